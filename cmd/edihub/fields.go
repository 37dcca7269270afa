package main

import (
	"encoding/json"
	"slices"
	"strings"
)

// sortedFields returns the keys with those that people look for first in front.
func sortedFields(v map[string]json.RawMessage) []string {
	first := []string{"id", "state", "code", "detail", "at", "from", "to"}
	out := make([]string, 0, len(v))
	for k := range v {
		out = append(out, k)
	}
	rank := func(k string) int {
		if i := slices.Index(first, k); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortFunc(out, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return out
}
