"""Vector backends behind one protocol. No record, hit or index in this tree has a text field."""
