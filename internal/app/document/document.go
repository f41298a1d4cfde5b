// Package document writes results of commands as JSON.
package document

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// Flag defines --json.
func Flag(flags *pflag.FlagSet, to *bool) {
	flagvalue.BoolVar(flags, to, "json", "print one JSON document")
}

// Print writes a document.
func Print(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print the document: %w", err)
	}
	return nil
}

// Key is a key within an object: as key, or as key_base64 if it is not UTF-8.
type Key struct {
	Text   *string `json:"key,omitempty"`
	Base64 []byte  `json:"key_base64,omitempty"`
}

// KeyOf returns a name as a Key.
func KeyOf(name string) Key {
	if utf8.ValidString(name) {
		return Key{Text: &name}
	}
	return Key{Base64: []byte(name)}
}
