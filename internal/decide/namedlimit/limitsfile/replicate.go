package limitsfile

import (
	"bytes"
	"errors"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/store/replicas"
)

// Between servers, changes are sent as texts, in the order in which they are to be applied:
//
//	ALL                      if it replaces everything
//	a file of definitions    all of them, if they have changed
//	lines of overrides       as in the file of overrides
const (
	allLine = "ALL\n"
	// textBytes bounds a text, approximately.
	textBytes = 128 << 10
)

var ErrChanges = errors.New("limitsfile: not a text of this format")

func ChangeTexts(t namedlimit.Changes) (texts [][]byte) {
	var b []byte
	if t.All {
		b = append(b, allLine...)
	}
	if t.All || t.Definitions != nil {
		b = append(b, keptText(t.Definitions)...)
	}
	for i := range t.Overrides {
		if len(b) >= textBytes {
			texts, b = append(texts, b), nil
		}
		b = appendOverride(b, &t.Overrides[i])
	}
	if len(b) > 0 {
		texts = append(texts, b)
	}
	return texts
}

// ReadChanges reads a text of ChangeTexts.
func ReadChanges(text []byte) (t namedlimit.Changes, err error) {
	text, t.All = bytes.CutPrefix(text, []byte(allLine))
	if bytes.HasPrefix(text, []byte("cellserver limits,")) {
		end := bytes.Index(text, []byte("\ncrc32c "))
		if end < 0 {
			return t, ErrChanges
		}
		line := bytes.IndexByte(text[end+1:], '\n')
		if line < 0 {
			return t, ErrChanges
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
			return t, ErrChanges
		}
		t.Overrides = append(t.Overrides, o)
	}
	return t, nil
}

// Replicated records and applies a registry's changes as texts.
type Replicated struct{ Registry *namedlimit.Registry }

// Record starts recording changes, first everything, or stops it.
func (r Replicated) Record(on bool) { r.Registry.Record(on) }

// TakeRecorded returns the changes since its last call. It skips one that is being written, unless wait is
// set.
func (r Replicated) TakeRecorded(wait bool) [][]byte {
	t, ok := r.Registry.TakeRecorded(wait)
	if !ok {
		return nil
	}
	return ChangeTexts(t)
}

func (r Replicated) Everything() [][]byte { return ChangeTexts(r.Registry.Everything()) }

func (r Replicated) Digests() replicas.Definitions { return r.Registry.Digests() }

// Apply applies a text of another server.
func (r Replicated) Apply(text []byte) error {
	t, err := ReadChanges(text)
	if err != nil {
		return err
	}
	return r.Registry.Apply(t)
}
