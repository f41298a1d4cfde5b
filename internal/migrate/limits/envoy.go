package limits

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/envoyconfig"
)

// Note names a construct that is not translated, or only in part, and what to do.
type Note struct {
	Path string
	Line int
	Text string
}

func (n Note) String() string { return n.Path + ":" + strconv.Itoa(n.Line) + ": " + n.Text }

// Translate returns the limits file for configurations of envoyproxy/ratelimit, and notes in the order of
// files and lines. The error has one line and names all invalid lines, as FILE:LINE.
//
// Each sequence of descriptor keys in a domain becomes a limit; a request sends the descriptor's values as
// the key, joined by |. Values choose overrides as they choose descriptors there: an exact value first, then
// wildcards in the file's order, then the key alone, on each level, without going back. What has no
// equivalent becomes a Note.
//
// The model is src/config/config_impl.go and src/limiter/cache_key.go of envoyproxy/ratelimit at f2fb157. It
// compares "key_value" as a whole, so that its key a with the value b_c is also its key a_b with the value c;
// here keys are separate, and a Note names keys of a level that it may confuse.
func Translate(files []envoyconfig.File, options envoyconfig.Options) (out []byte, notes []Note, err error) {
	if len(files) == 0 {
		return nil, nil, errors.New("no configuration to translate")
	}
	config, err := envoyconfig.Parse(files, options)
	if err != nil {
		return nil, nil, err
	}
	t := &translator{names: map[string]bool{}, index: index{}}
	for _, n := range config.Notes {
		t.note(n.At, n.Text)
	}
	for _, d := range config.Domains {
		if len(t.problems) == 0 {
			t.translate(d)
		}
	}
	t.checkBounds()
	if len(t.problems) > 0 {
		return nil, nil, t.problems
	}
	return t.file(files), t.sorted(), nil
}

// maxOverrides bounds the overrides of all limits, which aliases in a file may exceed with few bytes.
const maxOverrides = 1_000_000

type translator struct {
	limits   []*limit
	names    map[string]bool // of limits
	index    index
	notes    []located
	problems yamlfile.Problems

	overrides int // so far
}

// located is a note with its file's position.
type located struct {
	Note
	file int
}

func (t *translator) note(a at, text string) {
	t.notes = append(t.notes, located{Note{a.Path, a.Line, text}, a.File})
}

func (t *translator) fail(a at, problem string) {
	t.problems = append(t.problems, a.String()+": "+problem)
}

// sorted returns the notes in order, once each: aliases may repeat one.
func (t *translator) sorted() (notes []Note) {
	slices.SortStableFunc(t.notes, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.Line, b.Line))
	})
	for _, n := range t.notes {
		if !slices.Contains(notes[lineStart(notes, n.Note):], n.Note) {
			notes = append(notes, n.Note)
		}
	}
	return notes
}

// lineStart returns the position of the first of the last notes that share a line with n.
func lineStart(notes []Note, n Note) int {
	from := len(notes)
	for from > 0 && notes[from-1].Path == n.Path && notes[from-1].Line == n.Line {
		from--
	}
	return from
}
