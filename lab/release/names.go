package main

import (
	_ "embed"
	"strings"
)

//go:embed names.env
var namesFile string

// published returns what the project is called where it is published, or "".
func published(name string) string {
	for line := range strings.Lines(namesFile) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
