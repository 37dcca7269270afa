package ubl

import "iter"

// Type says what an element holds: one of the value types or an aggregate.
type Type uint16

// The value types, in the order of internal/tools/ubltables.
const (
	AnyType Type = iota + 1
	TextType
	CodeType
	IdentifierType
	AmountType
	QuantityType
	MeasureType
	NumericType
	BinaryType
	IndicatorType
	DateType
	TimeType

	firstAggregate
)

// Child is an element that an aggregate may hold.
type Child struct {
	Kind     Kind
	Required bool
	Many     bool
}

// TypeOf returns the type of a kind; 0 for Foreign.
func TypeOf(k Kind) Type { return kindTypes[k] }

// Children returns what an aggregate may hold, in its order; nil for a value type.
func (t Type) Children() []Child {
	if t < firstAggregate {
		return nil
	}
	return aggregates[t-firstAggregate]
}

// Kinds yields all kinds but Foreign.
func Kinds() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for k := Foreign + 1; k < kindCount && yield(k); k++ {
		}
	}
}

// AttrNames yields all attributes but ForeignAttr.
func AttrNames() iter.Seq[AttrName] {
	return func(yield func(AttrName) bool) {
		for a := ForeignAttr + 1; a < attrCount && yield(a); a++ {
		}
	}
}
