// Package peppol judges UBL 2.1 invoices and credit notes by the business rules of EN 16931 and
// Peppol BIS Billing: it fills the semantic invoice of EN 16931-1 from the tree of package ubl
// and runs versioned sets of rules over it. Rules are Go functions with an id, a severity and a
// message; the engine knows no rule by name. The verdicts are those of the published Schematron
// rules, quirks included.
package peppol

//go:generate go test -run ^TestConformanceDocument$ -update .
