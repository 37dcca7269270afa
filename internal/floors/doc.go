// Package floors keeps the layering of the hub: a package imports only lower floors. It holds
// nothing but the test.
package floors
