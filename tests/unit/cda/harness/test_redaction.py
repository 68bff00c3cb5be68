import pytest
from hypothesis import given
from hypothesis import strategies as st

from cda.harness.redaction import KINDS, redact

out = pytest.mark.promise("harness.phi-out")
keep = pytest.mark.promise("harness.phi-keep")
placeholders = pytest.mark.promise("harness.phi-placeholders")

# kind, text, what must be gone. One row a form; the counterexamples are in KEPT.
GONE = [
    ("NAME", "Patient: Rosa Alvarez, T1DM", "Rosa|Alvarez"),
    ("NAME", "PATIENT: ALVAREZ, ROSA M. Type 1 diabetes", "ALVAREZ|ROSA"),
    ("NAME", "patient name: rosa alvarez, A1c 8.6", "rosa|alvarez"),
    ("NAME", "Name: Rosa Alvarez\nA1c 8.6", "Rosa|Alvarez"),
    ("NAME", "Mr. Alvarez checks daily", "Alvarez"),
    ("NAME", "MRS. ALVAREZ checks daily", "ALVAREZ"),
    ("NAME", "mrs. alvarez checks daily", "alvarez"),
    ("NAME", "Ms. White tests daily", "White"),
    ("NAME", "pt Rosa Alvarez seen today", "Rosa|Alvarez"),
    ("NAME", "Patient Oyelaran Adeyemi seen today", "Oyelaran|Adeyemi"),
    ("NAME", "Rosa Alvarez is a 43-year-old woman", "Rosa|Alvarez"),
    ("NAME", "Quill Featherstone, 43 y/o, has T1DM", "Quill|Featherstone"),
    ("NAME", "Rosa reports five sticks a day", "Rosa"),
    ("NAME", "seen by Dr. Chen in clinic", "Chen"),
    ("NAME", "Electronically signed by Jane Okafor, MD", "Jane|Okafor"),
    ("NAME", "Okafor, MD, endocrinology", "Okafor"),
    ("NAME", "her husband Tomasz drives", "Tomasz"),
    ("NAME", "Maria O'Neill-Garcia tests daily", "Maria|Neill|Garcia"),
    ("NAME", "Sincerely,\nJane Okafor", "Jane|Okafor"),
    ("NAME", "J. Osei reports 4 sticks/day", "Osei"),
    ("NAME", "Pt. Alvarez, 43, tests daily", "Alvarez"),
    ("NAME", "Member Alvarez has type 2 diabetes", "Alvarez"),
    ("NAME", "T1DM. Alvarez tests five times daily", "Alvarez"),
    ("NAME", "SMITH, JOHN A DOB 02/03/1950", "SMITH|JOHN"),
    ("NAME", "Zhang Wei, 52F, has T2DM", "Zhang|Wei"),
    ("NAME", "Patient initials: R.A. with RA", "R.A. "),
    ("LOCATION", "Lives at 412 Elm Street, Springfield, IL 62704.", "Elm|Springfield|62704"),
    ("LOCATION", "12 N. Pine St, Apt 4", "Pine|Apt 4"),
    ("LOCATION", "4120 north elm avenue", "elm"),
    ("LOCATION", "PO Box 1271", "1271"),
    ("LOCATION", "ZIP code: 02139-1234", "02139"),
    ("LOCATION", "Springfield, IL 62704", "Springfield|62704"),
    ("LOCATION", "She lives in Springfield with T1DM", "Springfield"),
    ("LOCATION", "from Cook County", "Cook"),
    ("LOCATION", "City: Springfield", "Springfield"),
    ("DOB", "born March 14, 1981", "March|14"),
    ("DOB", "born on the 14th of March, 1981", "14th|March"),
    ("DOB", "DOB 1981-03-14", "1981-03"),
    ("DOB", "D.O.B.: 3/14/81", "3/14"),
    ("DOB", "date of birth is 14 Mar 1981", "14 Mar"),
    ("DOB", "DOB: 03141981", "03141981"),
    ("DOB", "b. 3/14/1981", "3/14"),
    ("DATE", "admitted 3/4/2024 for DKA", "3/4/2024"),
    ("DATE", "discharged on March 6, 2024", "March 6"),
    ("AGE", "92-year-old with T1DM", "92"),
    ("AGE", "age: 95, on insulin", "95"),
    ("AGE", "102 y/o female", "102"),
    ("AGE", "ninety-two year old man", "ninety-two"),
    ("AGE", "94M with COPD", "94M"),
    ("PHONE", "call 555-123-4567 today", "555-123"),
    ("PHONE", "call 555.123.4567 today", "555.123"),
    ("PHONE", "(555) 123-4567 ext 22", "123-4567|22"),
    ("PHONE", "cell: 555-1234", "555-1234"),
    ("PHONE", "tel 5551234567", "5551234567"),
    ("PHONE", "+44 20 7946 0958", "7946"),
    ("PHONE", "1-555-123-4567", "555-123"),
    ("FAX", "fax 555-987-6543", "987-6543"),
    ("EMAIL", "rosa.alvarez+cgm@example.org", "rosa|example"),
    ("EMAIL", "rosa [at] example.org", "rosa"),
    ("SSN", "SSN 123-45-6789", "123-45"),
    ("SSN", "ssn: 123456789", "123456789"),
    ("SSN", "social security number 123 45 6789", "123 45"),
    ("SSN", "SSN last 4 6789", "6789"),
    ("SSN", "last four of her SSN: 1234", "1234"),
    ("SSN", "SSN ending in 6789", "6789"),
    ("SSN", "xxx-xx-6789", "6789"),
    ("SSN", "id 123456789 given", "123456789"),
    ("MRN", "CPT 95250, glucose 10025, MRN 12345678", "12345678"),
    ("MRN", "MRN#A-778201", "778201"),
    ("MRN", "medical record number is 778201", "778201"),
    ("MRN", "chart # 88213", "88213"),
    ("MRN", "Patient ID: 88213", "88213"),
    ("PLAN_ID", "member ID: XYZ123456789", "XYZ123456789"),
    ("PLAN_ID", "group # 998877", "998877"),
    ("PLAN_ID", "Group: 12345", "12345"),
    ("PLAN_ID", "policy number ABC-991-22", "ABC-991"),
    ("PLAN_ID", "Medicare 1EG4-TE5-MK73", "1EG4"),
    ("ACCOUNT", "account no. 00012345", "00012345"),
    ("ACCOUNT", "claim number 20240099", "20240099"),
    ("LICENSE", "driver's license # D4455667", "D4455667"),
    ("LICENSE", "DEA BC1234563", "BC1234563"),
    ("OTHER_ID", "NPI 1234567893", "1234567893"),
    ("OTHER_ID", "identifier 4455667788", "4455667788"),
    ("OTHER_ID", "AB123456 on file", "AB123456"),
    ("VEHICLE", "VIN 1HGCM82633A004352", "1HGCM"),
    ("VEHICLE", "license plate ABC-1234", "ABC-1234"),
    ("DEVICE", "pump serial number SN-449921", "449921"),
    ("DEVICE", "S/N: 8841-22", "8841"),
    ("DEVICE", "MAC 00:1B:44:11:3A:B7", "1B:44"),
    ("URL", "see https://portal.example.org/p?id=1", "portal"),
    ("URL", "see www.example.com for logs", "example"),
    ("IP", "from 10.2.3.4 today", "10.2.3.4"),
    ("IP", "from fe80::1ff:fe23:4567:890a", "fe80"),
    ("BIOMETRIC", "fingerprint ID 4471", "4471"),
    ("PHOTO", "photo IMG_1234.jpg attached", "IMG_1234"),
    ("FILE", "see alvarez_rosa_mri.pdf", "alvarez|rosa"),
]

KEPT = [
    "CPT 95250 and CPT 95249-59, HCPCS A9276, J1745, 0501T",
    "E10.9, M05.79, K50.90, G47.33, Z79.4",
    "glucose 10025, platelets 250000, WBC 11200, viral load 1500000 copies/mL",
    "A1c 8.6 %, BP 120/80, HR 72, T 98.6F, SpO2 97%, BMI 31.2, weight 95 kg",
    "MTX 15 mg weekly, lispro 5 units TID, glargine 22 u qHS",
    "policy MHP-MP-0142, clause MHP-MP-0142.v1.C2, plan MHP-PPO-GOLD, LCD L33822, NCD 190.25",
    "clause 12345678 and section 1.3.4.2 apply",
    "sensor started 3/1/2024, seen 2024-03-15, MTX since 01/2024, study on March 4, 2024, 20240315",
    "born at 38 weeks; 45 years old; 89 years old; age 52; onset at age 32",
    "Type 1 diabetes. Tests 5x/day, 4-5 times per day, 28/week; PT 6 weeks; 37 sensors per 31 days",
    "Patient: Type 1 diabetic. Patient: Denies CHF. PATIENT: FEMALE, 43. Patient Has Type 1 Diabetes",
    "Crohn's disease, Graves' disease, Bell's palsy, Parkinson disease, Charcot-Marie-Tooth",
    "Mother Had breast cancer at 52. Father: CHF. Sister with Type 2 diabetes",
    "70553 Brain CT Way back; walks 2 blocks down the road; 12 units at bedtime",
    "Dexcom G6, Libre 2, Medtronic 780G; Epworth 14; Apgar 9; Glasgow 15",
    "MRI brain: no papilledema. MR angiogram normal. MS progression. DR screening normal",
    "Seen in Endocrinology, MD to review; seen by Cardiology; reviewed by Rheumatology",
    "lives in Texas, lives alone, resident of Ohio",
    "account of pain; chart shows 5 sticks; visit 12 of 20; case closed; reference range 70-180",
    "gestation 24w3d; level 2 hypoglycemia; 1,250,000; 12-20; 130-139-142",
    "E. Coli in urine; C. Difficile; L. Knee pain; Meter reports 4 tests; Cigna denies; Spirometry tests normal",
    "Plan: 500 mg metformin; Auth pending; Sees Dr. for follow up; Doctor Visits monthly; Nurse Practitioner visit",
    "Insulin Aspart and Insulin Glargine; Humalog KwikPen; Ozempic was stopped; Home Sleep Apnea Test negative",
    "NDC 00002-7510-01 dispensed",
    "PA required for J1745; prior authorization on file",
    "Osteoarthritis of L4-L5; C5-6 disc; EDSS 4.5; SN ratio",
]


@out
@pytest.mark.parametrize(("kind", "text", "gone"), GONE)
def test_an_identifier_is_taken_out_and_named_by_its_kind(kind: str, text: str, gone: str) -> None:
    redacted = redact({"narrative": text})
    for word in gone.split("|"):
        assert word not in redacted.texts["narrative"]
    assert kind in {redaction.kind for redaction in redacted.redactions}


@keep
@pytest.mark.parametrize("text", KEPT)
def test_clinical_text_without_identifiers_is_left_as_it_is(text: str) -> None:
    assert redact({"narrative": text}).texts["narrative"] == text


@keep
def test_only_the_record_number_goes_from_a_line_of_numbers() -> None:
    text = "CPT 95250, glucose 10025, MRN 12345678"
    assert redact({"narrative": text}).texts["narrative"] == "CPT 95250, glucose 10025, MRN [MRN]"


@out
def test_every_kind_of_the_safe_harbour_that_text_can_show_has_a_row() -> None:
    assert {kind for kind, _, _ in GONE} == set(KINDS)


@out
def test_a_name_found_in_the_narrative_is_taken_out_of_the_question_too() -> None:
    texts = redact({"narrative": "Patient: Rosa Okonkwo-Bell.", "question": "May OKONKWO have a sensor?"}).texts
    assert texts["question"] == "May [NAME] have a sensor?"


@keep
def test_words_that_the_request_itself_uses_as_ids_are_kept() -> None:
    assert redact({"narrative": "plan id PLAN-7781"}, keep={"plan-7781"}).texts["narrative"] != "plan id PLAN-7781"
    assert redact({"narrative": "plan id PLAN-7781"}, keep={"PLAN-7781"}).texts["narrative"] == "plan id PLAN-7781"


@placeholders
def test_offsets_are_those_of_the_placeholders_in_the_result() -> None:
    redacted = redact(
        {"narrative": "Patient: Rosa Alvarez, MRN 12345678, 92-year-old, DOB 3/14/31.", "question": "Mr. Chen?"}
    )
    shown = [redacted.texts[r.field][r.start : r.end] for r in redacted.redactions]
    assert shown == ["[NAME]", "[MRN]", "[AGE 90+]", "[DOB]", "[NAME]"]


@placeholders
@given(st.lists(st.sampled_from([text for _, text, _ in GONE] + KEPT), max_size=4).map(". ".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact({"narrative": text}).texts["narrative"]
    assert redact({"narrative": once}).texts["narrative"] == once


@placeholders
@given(st.text(max_size=200))
def test_any_text_can_be_redacted_and_every_placeholder_is_where_it_is_said_to_be(text: str) -> None:
    redacted = redact({"narrative": text})
    for found in redacted.redactions:
        assert redacted.texts["narrative"][found.start] == "["
        assert redacted.texts["narrative"][found.end - 1] == "]"
