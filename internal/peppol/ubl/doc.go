// Package ubl reads UBL 2.1 invoices and credit notes: ReadHead takes what an envelope would say
// from a stream, and Parse makes a compact tree of a whole document for the rules.
//
// The tree is one array of nodes in document order. A node carries a small integer, its Kind,
// instead of a name; text and attributes are spans of the document. A Parser keeps its arrays, so
// that reading a document of usual size allocates nothing.
package ubl

//go:generate go run ../../tools/ubltables
