package limitsfile

import (
	"bytes"
	"errors"

	"cellserver/internal/decide/namedlimit"
)

// Between servers, changes are told in texts, in the order in which they are to be applied:
//
//	ALL                      if it replaces everything
//	a file of definitions    all of them, if they have changed
//	lines of overrides       as in the file of overrides
const (
	allLine = "ALL\n"
	// toldBytes bounds a text, approximately.
	toldBytes = 128 << 10
)

// ErrTold reports a text of another format.
var ErrTold = errors.New("limitsfile: not a text of this format")

// ToldTexts returns the texts of a change.
func ToldTexts(t namedlimit.Told) (texts [][]byte) {
	var b []byte
	if t.All {
		b = append(b, allLine...)
	}
	if t.All || t.Definitions != nil {
		b = append(b, keptText(t.Definitions)...)
	}
	for i := range t.Overrides {
		if len(b) >= toldBytes {
			texts, b = append(texts, b), nil
		}
		b = appendOverride(b, &t.Overrides[i])
	}
	if len(b) > 0 {
		texts = append(texts, b)
	}
	return texts
}

// ReadTold reads a text of ToldTexts.
func ReadTold(text []byte) (t namedlimit.Told, err error) {
	text, t.All = bytes.CutPrefix(text, []byte(allLine))
	if bytes.HasPrefix(text, []byte("cellserver limits,")) {
		end := bytes.Index(text, []byte("\ncrc32c "))
		if end < 0 {
			return t, ErrTold
		}
		line := bytes.IndexByte(text[end+1:], '\n')
		if line < 0 {
			return t, ErrTold
		}
		end += 1 + line + 1
		if t.Definitions, err = parseKept(text[:end]); err != nil {
			return t, err
		}
		if t.Definitions == nil {
			t.Definitions = []namedlimit.Definition{}
		}
		text = text[end:]
	}
	lines := keptOverrides{policies: map[string]namedlimit.Policy{}, zones: anyZone()}
	for line := range bytes.Lines(text) {
		o, ok := lines.change(line)
		if !ok {
			return t, ErrTold
		}
		t.Overrides = append(t.Overrides, o)
	}
	return t, nil
}
