package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// jsonFlag defines --json.
func jsonFlag(flags *pflag.FlagSet, to *bool) {
	flagvalue.BoolVar(flags, to, "json", "print one JSON document")
}

// printJSON writes a document.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print the document: %w", err)
	}
	return nil
}

// documentKey is a key within an object: as key, or as key_base64 if it is not UTF-8.
type documentKey struct {
	Text   *string `json:"key,omitempty"`
	Base64 []byte  `json:"key_base64,omitempty"`
}

// documentKeyOf returns a name as a key of JSON.
func documentKeyOf(name string) documentKey {
	if utf8.ValidString(name) {
		return documentKey{Text: &name}
	}
	return documentKey{Base64: []byte(name)}
}
