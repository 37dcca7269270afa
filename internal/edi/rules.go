package edi

//go:generate go run ../tools/rulesdoc ../../docs/findings.md

import (
	"slices"
	"strings"
)

// Class says what kind of fault a rule of EDIFACT and X12 reports. Rules of one class are answered
// with the same codes wherever the standards do not tell them apart.
type Class uint8

// The classes. An agreement's warn_only names ClassCode, ClassLength and ClassUnused.
const (
	ClassNone        Class = iota // not a rule of EDIFACT or X12
	ClassLenient                  // read in spite of a flaw; never answered
	ClassMore                     // findings were left out
	ClassLimit                    // beyond a limit of the hub
	ClassStructure                // the envelope cannot be followed
	ClassDelimiter                // a delimiter cannot be used
	ClassTrailer                  // a trailer is missing
	ClassStray                    // a trailer closes nothing
	ClassReference                // references of header and trailer differ
	ClassCount                    // a count differs from what was received
	ClassDuplicate                // the reference was used before
	ClassBinary                   // a length of binary data is wrong
	ClassUnsupported              // there is no table for it
	ClassUnknown                  // a segment that the directory or the message does not have
	ClassOrder                    // a segment at a place where it may not stand
	ClassMissing                  // a mandatory segment, element or component is not there
	ClassCondition                // a relational note is violated by what is absent
	ClassExclusion                // a relational note is violated by what is present
	ClassRepeat                   // more repetitions than allowed
	ClassMany                     // more elements or components than the table has
	ClassLength                   // a value is too long or too short
	ClassCharset                  // a character that the character set does not have
	ClassType                     // a character that the type does not allow, or a number in no notation
	ClassCode                     // a value that the code list does not have
	ClassDate                     // not a date
	ClassTime                     // not a time
	ClassHierarchy                // HL or LS and LE do not fit together
	ClassUnused                   // present, but the guideline does not use it
	ClassParty                    // not for us, from nobody we know, or for another use than agreed
)

var classNames = [...]string{
	"none", "lenient", "more", "limit", "structure", "delimiter", "trailer", "stray", "reference", "count", "duplicate", "binary",
	"unsupported", "unknown", "order", "missing", "condition", "exclusion", "repeat", "many", "length", "charset", "type", "code",
	"date", "time", "hierarchy", "unused", "party",
}

// String returns the word that docs/findings.md and warn_only use.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "class-" + itoa(int64(c))
}

// Scope is the level of a document that a rule speaks of.
type Scope uint8

// The scopes, from the outermost.
const (
	ScopeInterchange Scope = iota + 1
	ScopeGroup
	ScopeMessage
	ScopeSegment
	ScopeElement
)

// String names the scope.
func (s Scope) String() string {
	switch s {
	case ScopeInterchange:
		return "interchange"
	case ScopeGroup:
		return "group"
	case ScopeMessage:
		return "message"
	case ScopeSegment:
		return "segment"
	case ScopeElement:
		return "element"
	}
	return "unknown"
}

// Codes are what acknowledgements say about a rule. An empty one means that the code list has
// nothing for it: the level above is answered instead.
type Codes struct {
	// CONTRL is 0085 of the segment of the rule's scope: UCI, UCF, UCM, UCS or UCD.
	CONTRL string
	// X12Error is the code of a 997 or TA1: TA105 (interchange), AK905 (group), AK502 (message),
	// AK304 (segment) or AK403 (element).
	X12Error string
	// Implementation is the code of a 999 where it is another one: IK502, IK304 or IK403.
	Implementation string
}

// Rule describes one rule id of EDIFACT and X12.
type Rule struct {
	ID       string
	Class    Class
	Scope    Scope
	Severity Severity // without a word of the agreement
	Codes    Codes
}

// IK returns the code of a 999.
func (r *Rule) IK() string {
	if r.Codes.Implementation != "" {
		return r.Codes.Implementation
	}
	return r.Codes.X12Error
}

// The rules of the table checkers. Those of the envelope readers are in the same list, by the id
// that the readers build from a tag.
//
// Where a finding stands: Position.Segment counts UNH or ST as 1, Position.Element does not count
// the tag. A missing segment (RuleSegmentMissing) stands at the segment that came in its place,
// and Finding.Segment is the tag that was missed: AK302 and IK302 take the position as it is; UCS
// 0096 takes the one before it. UCD 0098 is Position.Element + 1, because S011 counts the tag.
// Finding.Loop is the innermost segment group or loop (AK303, IK303), Finding.DataElement the
// number of the data element (AK402, IK402) and Finding.Actual the bad value, at most MaxActual
// bytes of it as they came, without release characters (AK404, IK404).
const (
	RuleMessageUnknown   = "EDI-MESSAGE-UNKNOWN"   // no table of this message type in the directory
	RuleDirectoryUnknown = "EDI-DIRECTORY-UNKNOWN" // no directory of this version
	RuleSyntaxUnknown    = "EDI-SYNTAX-UNKNOWN"    // a syntax identifier or version without tables
	RuleGuidelineOther   = "EDI-GUIDELINE-OTHER"   // the guideline says nothing about this message type

	RuleSegmentUnknown    = "EDI-SEGMENT-UNKNOWN"    // no directory has the tag
	RuleSegmentNotInTable = "EDI-SEGMENT-NOT-IN-SET" // the message has no such segment
	RuleSegmentUnexpected = "EDI-SEGMENT-UNEXPECTED" // its group has not begun here
	RuleSegmentOrder      = "EDI-SEGMENT-ORDER"      // its place has passed or not come yet
	RuleSegmentMissing    = "EDI-SEGMENT-MISSING"    // mandatory, also as the first of a group
	RuleSegmentRepeat     = "EDI-SEGMENT-REPEAT"
	RuleLoopRepeat        = "EDI-LOOP-REPEAT"

	RuleElementMissing   = "EDI-ELEMENT-MISSING"
	RuleComponentMissing = "EDI-COMPONENT-MISSING"
	RuleElementCondition = "EDI-ELEMENT-CONDITION" // X12.6 notes P, R, C, L; ISO 9735-1 D1 to D3, D5, D6
	RuleElementExclusion = "EDI-ELEMENT-EXCLUSION" // X12.6 note E; ISO 9735-1 D1, D4, D7
	RuleElementsMany     = "EDI-ELEMENTS-MANY"
	RuleComponentsMany   = "EDI-COMPONENTS-MANY"
	RuleElementRepeat    = "EDI-ELEMENT-REPEAT"
	RuleElementShort     = "EDI-ELEMENT-SHORT"
	RuleElementLong      = "EDI-ELEMENT-LONG"
	RuleElementCharset   = "EDI-ELEMENT-CHARSET" // outside the character set of the interchange
	RuleElementType      = "EDI-ELEMENT-TYPE"    // letters in a number, digits among letters
	RuleElementNumber    = "EDI-ELEMENT-NUMBER"  // a sign or decimal mark where it may not stand
	RuleElementDigit     = "EDI-ELEMENT-DIGIT"   // no digit before the decimal mark
	RuleElementCode      = "EDI-ELEMENT-CODE"
	RuleElementDate      = "EDI-ELEMENT-DATE"
	RuleElementTime      = "EDI-ELEMENT-TIME"
	RuleElementUnused    = "EDI-ELEMENT-UNUSED" // the table itself marks it as not used
	RuleTrailing         = "EDI-TRAILING-SEPARATOR"

	RuleHLID     = "EDI-HL-ID"     // HL01 twice
	RuleHLParent = "EDI-HL-PARENT" // HL02 names no earlier HL01
	RuleHLChild  = "EDI-HL-CHILD"  // HL04 and the children differ
	RuleLoopID   = "EDI-LS-LE"     // LS and LE do not pair

	RuleGuidelineSegmentUnused  = "EDI-GUIDELINE-SEGMENT-UNUSED"
	RuleGuidelineSegmentMissing = "EDI-GUIDELINE-SEGMENT-MISSING"
	RuleGuidelineLoopMissing    = "EDI-GUIDELINE-LOOP-MISSING"
	RuleGuidelineSegmentRepeat  = "EDI-GUIDELINE-SEGMENT-REPEAT"
	RuleGuidelineLoopRepeat     = "EDI-GUIDELINE-LOOP-REPEAT"
	RuleGuidelineElementUnused  = "EDI-GUIDELINE-ELEMENT-UNUSED"
	RuleGuidelineElementMissing = "EDI-GUIDELINE-ELEMENT-MISSING"
	RuleGuidelineElementCode    = "EDI-GUIDELINE-ELEMENT-CODE"
	RuleGuidelineElementLength  = "EDI-GUIDELINE-ELEMENT-LENGTH"
)

// The rules that whoever keeps interchanges and knows partners adds to what was read. They are
// answered like those of the readers.
const (
	RuleInterchangeDuplicate = "EDI-INTERCHANGE-DUPLICATE" // the reference came before with other content
	RuleGroupDuplicate       = "EDI-GROUP-DUPLICATE"
	RuleMessageDuplicate     = "EDI-MESSAGE-DUPLICATE"
	RuleInterchangeVersion   = "EDI-INTERCHANGE-VERSION" // no agreement about this syntax or control version
	RuleGroupType            = "EDI-GROUP-TYPE"          // no agreement about this functional identifier
	RuleGroupVersion         = "EDI-GROUP-VERSION"       // no agreement about this version
	RuleSenderUnknown        = "EDI-SENDER-UNKNOWN"
	RuleRecipientOther       = "EDI-RECIPIENT-OTHER" // the recipient is neither us nor somebody we forward to
	RuleUsage                = "EDI-USAGE"           // a test where production was agreed, or the other way round
)

// RuleFindingsLimit closes a list of findings that was full: it says that more were left out. It
// is fatal when one of those was.
const RuleFindingsLimit = "EDI-FINDINGS-LIMIT"

// MaxActual is how many bytes of a bad value a finding of the tables keeps: X12 data element 724
// has at most 99 characters.
const MaxActual = 99

// Rules lists all rules of EDIFACT and X12 that this hub reports, sorted by id.
func Rules() []Rule { return slices.Clone(rules) }

// RuleOf returns the description of a rule id. ok is false for ids that are no rules of EDIFACT
// or X12; the description is then a fatal ClassNone.
func RuleOf(id string) (r Rule, ok bool) {
	i, ok := slices.BinarySearchFunc(rules, id, func(r Rule, id string) int { return strings.Compare(r.ID, id) })
	if !ok {
		return Rule{ID: id, Severity: Fatal}, false
	}
	return rules[i], true
}

// rules is never written to after it was made.
var rules = makeRules()

func makeRules() []Rule {
	list := []Rule{
		// Message level: 0085 14 in UCM, AK502 1.
		{RuleMessageUnknown, ClassUnsupported, ScopeMessage, Warning, Codes{"14", "1", ""}},
		{RuleDirectoryUnknown, ClassUnsupported, ScopeMessage, Warning, Codes{"14", "1", ""}},
		{RuleSyntaxUnknown, ClassUnsupported, ScopeMessage, Warning, Codes{"2", "1", ""}},
		{RuleGuidelineOther, ClassUnsupported, ScopeMessage, Warning, Codes{"14", "1", "I6"}},
		{RuleFindingsLimit, ClassMore, ScopeMessage, Warning, Codes{"", "5", ""}},

		// Segment level: 0085 in UCS, 720 in AK304, 620 in IK304.
		{RuleSegmentUnknown, ClassUnknown, ScopeSegment, Fatal, Codes{"15", "1", ""}},
		{RuleSegmentNotInTable, ClassUnknown, ScopeSegment, Fatal, Codes{"15", "6", ""}},
		{RuleSegmentUnexpected, ClassOrder, ScopeSegment, Fatal, Codes{"15", "2", ""}},
		{RuleSegmentOrder, ClassOrder, ScopeSegment, Fatal, Codes{"15", "7", ""}},
		{RuleSegmentMissing, ClassMissing, ScopeSegment, Fatal, Codes{"13", "3", ""}},
		{RuleSegmentRepeat, ClassRepeat, ScopeSegment, Fatal, Codes{"35", "5", ""}},
		{RuleLoopRepeat, ClassRepeat, ScopeSegment, Fatal, Codes{"36", "4", ""}},

		// Element level: 0085 in UCD, 723 in AK403, 621 in IK403.
		{RuleElementMissing, ClassMissing, ScopeElement, Fatal, Codes{"13", "1", ""}},
		{RuleComponentMissing, ClassMissing, ScopeElement, Fatal, Codes{"13", "1", ""}},
		{RuleElementCondition, ClassCondition, ScopeElement, Fatal, Codes{"13", "2", ""}},
		{RuleElementExclusion, ClassExclusion, ScopeElement, Fatal, Codes{"12", "10", ""}},
		{RuleElementsMany, ClassMany, ScopeElement, Fatal, Codes{"16", "3", ""}},
		{RuleComponentsMany, ClassMany, ScopeElement, Fatal, Codes{"16", "3", "13"}},
		{RuleElementRepeat, ClassRepeat, ScopeElement, Fatal, Codes{"35", "3", "12"}},
		{RuleElementShort, ClassLength, ScopeElement, Fatal, Codes{"40", "4", ""}},
		{RuleElementLong, ClassLength, ScopeElement, Fatal, Codes{"39", "5", ""}},
		{RuleElementCharset, ClassCharset, ScopeElement, Fatal, Codes{"21", "6", ""}},
		{RuleElementType, ClassType, ScopeElement, Fatal, Codes{"37", "6", ""}},
		{RuleElementNumber, ClassType, ScopeElement, Fatal, Codes{"19", "6", ""}},
		{RuleElementDigit, ClassType, ScopeElement, Fatal, Codes{"38", "6", ""}},
		{RuleElementCode, ClassCode, ScopeElement, Fatal, Codes{"12", "7", ""}},
		{RuleElementDate, ClassDate, ScopeElement, Fatal, Codes{"12", "8", ""}},
		{RuleElementTime, ClassTime, ScopeElement, Fatal, Codes{"12", "9", ""}},
		{RuleElementUnused, ClassUnused, ScopeElement, Fatal, Codes{"15", "3", "I10"}},
		{RuleTrailing, ClassLenient, ScopeElement, Warning, Codes{}},

		{RuleHLID, ClassHierarchy, ScopeElement, Fatal, Codes{"12", "7", ""}},
		{RuleHLParent, ClassHierarchy, ScopeElement, Fatal, Codes{"12", "7", ""}},
		{RuleHLChild, ClassHierarchy, ScopeElement, Fatal, Codes{"12", "7", ""}},
		{RuleLoopID, ClassHierarchy, ScopeElement, Fatal, Codes{"12", "7", ""}},

		// Guidelines have codes of their own in a 999 only.
		{RuleGuidelineSegmentUnused, ClassUnused, ScopeSegment, Fatal, Codes{"15", "2", "I4"}},
		{RuleGuidelineSegmentMissing, ClassMissing, ScopeSegment, Fatal, Codes{"13", "3", "I8"}},
		{RuleGuidelineLoopMissing, ClassMissing, ScopeSegment, Fatal, Codes{"13", "3", "I7"}},
		{RuleGuidelineSegmentRepeat, ClassRepeat, ScopeSegment, Fatal, Codes{"35", "5", ""}},
		{RuleGuidelineLoopRepeat, ClassRepeat, ScopeSegment, Fatal, Codes{"36", "4", ""}},
		{RuleGuidelineElementUnused, ClassUnused, ScopeElement, Fatal, Codes{"15", "3", "I10"}},
		{RuleGuidelineElementMissing, ClassMissing, ScopeElement, Fatal, Codes{"13", "1", "I9"}},
		{RuleGuidelineElementCode, ClassCode, ScopeElement, Fatal, Codes{"12", "7", "I6"}},
		{RuleGuidelineElementLength, ClassLength, ScopeElement, Fatal, Codes{"39", "5", ""}},

		// Keys and partners.
		{RuleInterchangeDuplicate, ClassDuplicate, ScopeInterchange, Fatal, Codes{"26", "025", ""}},
		{RuleGroupDuplicate, ClassDuplicate, ScopeGroup, Fatal, Codes{"26", "19", ""}},
		{RuleMessageDuplicate, ClassDuplicate, ScopeMessage, Fatal, Codes{"26", "23", ""}},
		{RuleInterchangeVersion, ClassUnsupported, ScopeInterchange, Fatal, Codes{"2", "003", ""}},
		{RuleGroupType, ClassUnsupported, ScopeGroup, Fatal, Codes{"14", "1", ""}},
		{RuleGroupVersion, ClassUnsupported, ScopeGroup, Fatal, Codes{"14", "2", ""}},
		{RuleSenderUnknown, ClassParty, ScopeInterchange, Fatal, Codes{"23", "006", ""}},
		{RuleRecipientOther, ClassParty, ScopeInterchange, Fatal, Codes{"7", "009", ""}},
		{RuleUsage, ClassParty, ScopeInterchange, Fatal, Codes{"25", "020", ""}},

		// Envelope readers.
		{"EDI-LIMIT", ClassLimit, ScopeInterchange, Fatal, Codes{"18", "022", ""}},
		{"EDI-UNA", ClassDelimiter, ScopeInterchange, Fatal, Codes{"20", "", ""}},
		{"EDI-UNB-SEPARATOR", ClassDelimiter, ScopeInterchange, Fatal, Codes{"22", "", ""}},
		{"EDI-ISA-DELIMITER", ClassDelimiter, ScopeInterchange, Fatal, Codes{"", "004", ""}},
		{"EDI-ISA-WIDTH", ClassStructure, ScopeInterchange, Fatal, Codes{"", "022", ""}},
		{"EDI-NO-TERMINATOR", ClassStructure, ScopeInterchange, Fatal, Codes{"22", "023", ""}},
		{"EDI-NO-TRAILER", ClassTrailer, ScopeInterchange, Fatal, Codes{"13", "023", ""}},
		{"EDI-DATA-OUTSIDE", ClassStructure, ScopeInterchange, Fatal, Codes{"33", "022", ""}},
		{"EDI-SEGMENT-OUTSIDE", ClassStructure, ScopeInterchange, Fatal, Codes{"33", "022", ""}},
		{"EDI-BIN-LENGTH", ClassBinary, ScopeElement, Fatal, Codes{"12", "7", ""}},
		{"EDI-BDS-LENGTH", ClassBinary, ScopeElement, Fatal, Codes{"12", "7", ""}},
		{"EDI-UNO-LENGTH", ClassBinary, ScopeElement, Fatal, Codes{"12", "7", ""}},
		{"EDI-UNG-MIXED", ClassStructure, ScopeGroup, Fatal, Codes{"30", "", ""}},
		{"EDI-UNH-OUTSIDE-GROUP", ClassStructure, ScopeMessage, Fatal, Codes{"30", "", ""}},
		{"EDI-ST-OUTSIDE-GROUP", ClassStructure, ScopeMessage, Fatal, Codes{"", "6", ""}},
		{"EDI-BOM", ClassLenient, ScopeInterchange, Warning, Codes{}},
		{"EDI-LEADING-SPACE", ClassLenient, ScopeInterchange, Warning, Codes{}},
		{"EDI-INDENT", ClassLenient, ScopeInterchange, Warning, Codes{}},
		{"EDI-EMPTY-SEGMENT", ClassLenient, ScopeInterchange, Warning, Codes{}},
		{"EDI-PADDING", ClassLenient, ScopeInterchange, Warning, Codes{}},
	}
	for _, t := range []struct {
		tag                 string
		scope               Scope
		missing, ref, count string // codes of X12
	}{
		{"UNT", ScopeMessage, "", "", ""},
		{"UNP", ScopeMessage, "", "", ""},
		{"UNE", ScopeGroup, "", "", ""},
		{"UNZ", ScopeInterchange, "", "", ""},
		{"SE", ScopeMessage, "2", "3", "4"},
		{"GE", ScopeGroup, "3", "4", "5"},
		{"IEA", ScopeInterchange, "023", "001", "021"},
	} {
		edifact := t.tag[0] == 'U'
		contrl := func(code string) string {
			if edifact {
				return code
			}
			return ""
		}
		stray := "022"
		if edifact {
			stray = ""
		}
		list = append(list,
			Rule{"EDI-" + t.tag + "-MISSING", ClassTrailer, t.scope, Fatal, Codes{contrl("13"), t.missing, ""}},
			Rule{"EDI-" + t.tag + "-REF", ClassReference, t.scope, Fatal, Codes{contrl("28"), t.ref, ""}},
			Rule{"EDI-" + t.tag + "-COUNT", ClassCount, t.scope, Fatal, Codes{contrl("29"), t.count, ""}},
			Rule{"EDI-" + t.tag + "-STRAY", ClassStray, ScopeInterchange, Fatal, Codes{contrl("33"), stray, ""}},
		)
	}
	slices.SortFunc(list, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Row is the rule's line in the table of docs/findings.md.
func (r *Rule) Row() string {
	cells := []string{
		"`" + r.ID + "`", r.Class.String(), r.Scope.String(), string(r.Severity),
		dash(r.Codes.CONTRL), dash(r.Codes.X12Error), dash(r.IK()),
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
