package measure

import "errors"

var (
	errEnded   = errors.New("the measurement has ended")
	errNoMDN   = errors.New("no positive MDN")
	errDynamic = errors.New("not a static program")
	// ErrNotReady is returned when a program ended, or fell silent, before it was ready.
	ErrNotReady = errors.New("the hub did not become ready")
	// ErrNotAllowed is returned where the system does not let this user make an empty machine.
	ErrNotAllowed = errors.New("this user may not make an empty machine")
)
