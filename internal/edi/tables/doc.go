// Package tables checks messages of EDIFACT and X12 against directory tables: which segments
// stand where, and what their elements hold. It knows the compact form in which tables are kept,
// compiles it for one message type, and walks through a message once. Which table a message
// needs and which notation its values have is the business of the packages of the two standards.
package tables
