package settings

import (
	"github.com/spf13/pflag"
)

// FlagGroup is the flags under one heading of the help.
type FlagGroup struct {
	Title string
	Flags *pflag.FlagSet
}
