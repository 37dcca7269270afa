package peppol

import (
	"slices"
	"strings"
	"testing"
)

// TestStructureOnlyWhenAsked shows that the set ubl is one that a caller names.
func TestStructureOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	whole := base(t).bytes()
	if v, err := Validate(whole, Options{Sets: Sets(), Structure: true}); err != nil || len(v.Findings) > 0 {
		t.Errorf("the sample: %v, %+v", err, v)
	}
	doc := []byte(strings.Replace(string(whole), "<cbc:IssueDate>", "<cbc:Unheard/><cbc:IssueDate>", 1))
	for _, asked := range []bool{false, true} {
		v, err := Validate(doc, Options{Sets: Sets(), Structure: asked})
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, f := range v.Findings {
			if f.Ruleset == structureSet {
				found = append(found, f.Rule+" "+f.Location)
			}
		}
		want := []string{"UBL-STRUCT-UNKNOWN /Invoice/cbc:Unheard[1]"}
		if asked && !slices.Equal(found, want) || !asked && found != nil {
			t.Errorf("asked %v: got %v", asked, found)
		}
	}
}
