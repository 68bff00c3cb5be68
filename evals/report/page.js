"use strict";
(() => {
  const cases = [...document.querySelectorAll(".cases > li")];
  const search = document.getElementById("q");
  const choices = ["set", "gate", "result"].map((name) => document.getElementById(name));
  const shown = document.getElementById("shown");

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const entry of cases) {
      const fits =
        choices.every((choice) => !choice.value || entry.dataset[choice.id] === choice.value) &&
        words.every((word) => entry.dataset.text.includes(word));
      entry.hidden = !fits;
      count += fits;
    }
    shown.textContent = `${count} of ${cases.length} cases`;
  };
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = target && target.querySelector("details");
    if (!details) return;
    target.hidden = false;
    details.open = true;
    target.scrollIntoView();
    details.querySelector("summary").focus({ preventScroll: true });
  };
  document.getElementById("filters").addEventListener("input", filter);
  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing) {
      event.preventDefault();
      search.focus();
    }
    if (event.key === "Escape" && document.activeElement === search) {
      search.value = "";
      filter();
    }
  });
  window.addEventListener("hashchange", open);
  filter();
  open();
})();
