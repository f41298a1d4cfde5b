// Package yamlfile reads YAML files and collects all their errors with line numbers. A File belongs to one
// goroutine.
package yamlfile

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/smallfile"
)

// Read returns a file's text.
func Read(path string) ([]byte, error) { return ReadUpTo(path, smallfile.MaxBytes) }

// ReadUpTo is Read for a file of up to maxBytes, a multiple of 1 MiB.
func ReadUpTo(path string, maxBytes int) ([]byte, error) {
	text, err := smallfile.ReadUpTo(path, maxBytes)
	if err != nil {
		return nil, errors.New("cannot read " + path + ": " + smallfile.Cause(err).Error())
	}
	return text, nil
}

// File is a file being read.
type File struct {
	Path     string
	problems []problem
	merged   int // entries of merged mappings
}

type problem struct {
	line int
	text string
}

// Root returns the file's only document, or nil without a valid one.
func (f *File) Root(text []byte) *yaml.Node {
	if line, what := notText(text); what != "" {
		f.FailAt(line, what)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		f.FailAt(1, "not YAML: "+err.Error())
		return nil
	}
	document, found := f.next(loader)
	if !found {
		return nil
	}
	for behind, found := f.next(loader); found; behind, found = f.next(loader) {
		if !isEmpty(behind) {
			f.Fail(behind, "more than one document; remove this '---' and all below")
			break
		}
	}
	if f.Count() > 0 || isEmpty(document) {
		return nil
	}
	return document.Content[0]
}

// isEmpty reports whether a document has nothing, as behind a last '---'.
func isEmpty(document *yaml.Node) bool {
	return len(document.Content) == 0 || document.Content[0].Tag == "!!null"
}

func (f *File) next(loader *yaml.Loader) (document *yaml.Node, found bool) {
	document = &yaml.Node{}
	err := loader.Load(document)
	syntax := (*yaml.LoadError)(nil)
	switch {
	case err == nil:
		return document, true
	case errors.Is(err, io.EOF):
	case errors.As(err, &syntax):
		f.FailAt(max(1, syntax.Mark.Line), "not YAML: "+withoutText(syntax.Message))
	default:
		f.FailAt(1, "not YAML: "+err.Error())
	}
	return nil, false
}

// notText returns the first line with invalid text, and the reason, which the parser does not tell.
func notText(text []byte) (line int, what string) {
	line = 1
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			return line, "not text in UTF-8"
		case r == '\n':
			line++
		case unicode.IsControl(r) && r != '\t' && r != '\r' && r != '\u0085', r == '\ufffe', r == '\uffff':
			return line, "has the control character " + strconv.QuoteRuneToASCII(r)
		}
		text = text[size:]
	}
	return 0, ""
}

const (
	maxMergeDepth = 32
	maxMerged     = 1 << 20 // entries of a file: aliases may repeat them more often than it has bytes
)

// Fields visits a mapping's entries and reports repeated keys. Those of mappings merged by << follow, unless
// the mapping, or one merged before, has the key.
func (f *File) Fields(n *yaml.Node, what string, visit func(key, value *yaml.Node)) {
	f.fields(n, what, map[string]bool{}, 0, visit)
}

func (f *File) fields(n *yaml.Node, what string, known map[string]bool, depth int, visit func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		f.Fail(n, what+" must be a mapping")
		return
	}
	if depth > 0 {
		f.merged += 1 + len(n.Content)/2
	}
	if depth > maxMergeDepth || f.merged > maxMerged {
		f.Fail(n, "too many merged mappings, or deeper than "+strconv.Itoa(maxMergeDepth)+" levels; write out some")
		return
	}
	var from *yaml.Node
	f.own(n, func(key, value *yaml.Node) {
		switch {
		case key.Tag == "!!merge":
			from = value
		case !known[key.Value]:
			known[key.Value] = true
			visit(key, value)
		}
	})
	if from == nil {
		return
	}
	mappings := []*yaml.Node{from}
	if from.Kind == yaml.SequenceNode {
		mappings = from.Content
	}
	for _, m := range mappings {
		if len(f.problems) < maxCounted {
			f.fields(Resolve(m), "a merged mapping", known, depth+1, visit)
		}
	}
}

// own visits the entries that stand in the mapping.
func (f *File) own(n *yaml.Node, visit func(key, value *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content) && len(f.problems) < maxCounted; i += 2 {
		key, value := n.Content[i], Resolve(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			f.Fail(key, "a key must be a word")
			continue
		}
		if line, ok := seen[key.Value]; ok {
			f.Fail(key, QuoteWord(key.Value)+" is in line "+strconv.Itoa(line)+" already")
			continue
		}
		seen[key.Value] = key.Line
		visit(key, value)
	}
}

// Items visits a sequence's elements.
func (f *File) Items(n *yaml.Node, what string, visit func(item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		f.Fail(n, what+" must be a list")
		return
	}
	for _, item := range n.Content {
		if len(f.problems) >= maxCounted {
			return
		}
		visit(Resolve(item))
	}
}

// Resolve returns an alias's target, and other nodes unchanged.
func Resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// Fail records an error of a node.
func (f *File) Fail(n *yaml.Node, problem string) { f.FailAt(n.Line, problem) }

// FailAt records an error of a line.
func (f *File) FailAt(line int, text string) {
	f.problems = append(f.problems, problem{line, f.Path + ":" + strconv.Itoa(line) + ": " + text})
}

// Count returns the number of errors so far.
func (f *File) Count() int { return len(f.problems) }

// Err returns the errors in the order of their lines, as Problems, or nil.
func (f *File) Err() error {
	if len(f.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(f.problems, func(a, b problem) int { return a.line - b.line })
	texts, told := make(Problems, 0, len(f.problems)), map[string]bool{}
	for _, p := range f.problems {
		if !told[p.text] || len(f.problems) >= maxCounted {
			texts = append(texts, p.text)
		}
		told[p.text] = true // aliases repeat it
	}
	return texts
}

// Problems are errors with file and line.
type Problems []string

const (
	// maxTold bounds the errors in a message.
	maxTold = 20
	// maxCounted bounds the search: aliases may repeat an error more often than the file has bytes.
	maxCounted = 1000
)

func (p Problems) Error() string {
	told := strings.Join(p[:min(len(p), maxTold)], "; ")
	if more := len(p) - maxTold; len(p) >= maxCounted {
		told += "; and many more errors"
	} else if more > 0 {
		told += "; and " + strconv.Itoa(more) + " more"
	}
	return told
}

// withoutText shortens the only message of the parser that has text of the file.
func withoutText(message string) string {
	const before, behind = "unknown anchor '", "' referenced"
	name, ok := strings.CutPrefix(message, before)
	if !ok {
		return message
	}
	return "unknown anchor " + QuoteWord(strings.TrimSuffix(name, behind))
}

const (
	maxQuotedBytes = 64
	maxWordBytes   = 32
)

// Quote quotes a file's text on a single line. It is for values of known fields: a file that has them is the
// right one, and no other with secrets.
func Quote(s string) string {
	if len(s) > maxQuotedBytes {
		s = s[:maxQuotedBytes] + "..."
	}
	return strconv.Quote(s)
}

// Word returns a text's first word, or its beginning. An error has no more of what may be another file, with
// secrets, if a wrong name is given: errors are logged.
func Word(s string) string {
	word := strings.TrimLeftFunc(s, unicode.IsSpace)
	if i := strings.IndexFunc(word, unicode.IsSpace); i >= 0 {
		word = word[:i]
	}
	if word = word[:min(len(word), maxWordBytes)]; len(word) < len(s) {
		word += "..."
	}
	return word
}

// QuoteWord quotes the Word of a text.
func QuoteWord(s string) string { return strconv.Quote(Word(s)) }
