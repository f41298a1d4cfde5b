package reply

import (
	"strings"

	"cellserver/internal/funnel"
)

// Answer is a reply to a request as a value.
type Answer struct {
	Result funnel.Result
	Error  string // as a client of Redis is replied it, with its code in front; empty where there is a Result
}

// Code is the first word of an error, by which clients know it.
func (a Answer) Code() string {
	code, _, _ := strings.Cut(a.Error, " ")
	return code
}
