package main

import (
	"github.com/spf13/pflag"
)

// flagGroup is the flags under one heading of the help.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}
