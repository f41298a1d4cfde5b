// Package yamlfile reads files of YAML, and collects what is wrong with them, each with its line, so that all of it can be
// corrected at once. A File belongs to one goroutine.
package yamlfile

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/smallfile"
)

// Read returns a file's text.
func Read(path string) ([]byte, error) {
	text, err := smallfile.Read(path)
	if err != nil {
		return nil, errors.New("cannot read " + path + ": " + smallfile.Cause(err).Error())
	}
	return text, nil
}

// File is a file that is being read.
type File struct {
	Path     string
	problems Problems
}

// Root returns the content of the file's only document; nil if it has none, or is wrong.
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
	if behind, found := f.next(loader); found {
		f.Fail(behind, "there must be one document; remove what is from this '---' on")
	}
	if f.Count() > 0 || len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
		return nil
	}
	return document.Content[0]
}

// next returns the next document, if there is one.
func (f *File) next(loader *yaml.Loader) (document *yaml.Node, found bool) {
	document = &yaml.Node{}
	err := loader.Load(document)
	syntax := (*yaml.LoadError)(nil)
	switch {
	case err == nil:
		return document, true
	case errors.Is(err, io.EOF):
	case errors.As(err, &syntax):
		f.FailAt(max(1, syntax.Mark.Line), "not YAML: "+syntax.Message)
	default:
		f.FailAt(1, "not YAML: "+err.Error())
	}
	return nil, false
}

// notText returns the first line in which something is no text, and what. The parser tells neither the line of that nor, of a file
// in UTF-16, that it is in another encoding.
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

// Fields visits the entries of a mapping, but for those whose key was there before.
func (f *File) Fields(n *yaml.Node, what string, visit func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		f.Fail(n, what+" must be a mapping")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content) && len(f.problems) < maxCounted; i += 2 {
		key, value := n.Content[i], Resolve(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			f.Fail(key, "a key must be a word")
			continue
		}
		if line, ok := seen[key.Value]; ok {
			f.Fail(key, Quote(key.Value)+" is in line "+strconv.Itoa(line)+" already")
			continue
		}
		seen[key.Value] = key.Line
		visit(key, value)
	}
}

// Resolve returns what an alias stands for, and anything else as it is.
func Resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// Fail notes what is wrong with a node.
func (f *File) Fail(n *yaml.Node, problem string) { f.FailAt(n.Line, problem) }

// FailAt notes what is wrong with a line.
func (f *File) FailAt(line int, problem string) {
	f.problems = append(f.problems, f.Path+":"+strconv.Itoa(line)+": "+problem)
}

// Count is how many problems there are so far.
func (f *File) Count() int { return len(f.problems) }

// Err is Problems, or nil.
func (f *File) Err() error {
	if len(f.problems) == 0 {
		return nil
	}
	return f.problems
}

// Problems are what is wrong with a file, each with the file and the line.
type Problems []string

const (
	// maxTold is how many an error tells.
	maxTold = 8
	// maxCounted is how many are looked for: a file may use what is wrong by aliases more often than it has bytes.
	maxCounted = 1000
)

func (p Problems) Error() string {
	told := strings.Join(p[:min(len(p), maxTold)], "; ")
	if more := len(p) - maxTold; len(p) >= maxCounted {
		told += "; and many more errors"
	} else if more > 0 {
		told += "; and " + strconv.Itoa(more) + " more errors"
	}
	return told
}

const maxQuotedBytes = 64

// Quote makes what stands in a file fit for one line.
func Quote(s string) string {
	if len(s) > maxQuotedBytes {
		s = s[:maxQuotedBytes] + "..."
	}
	return strconv.Quote(s)
}
