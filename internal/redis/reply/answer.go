package reply

import (
	"strings"

	"cellserver/internal/funnel"
)

// Answer is a reply as a value.
type Answer struct {
	Result funnel.Result
	Error  string // as sent to Redis clients, with its code; empty for a Result
}

// Code returns the error's first word, which identifies it.
func (a Answer) Code() string {
	code, _, _ := strings.Cut(a.Error, " ")
	return code
}
