// Package yamlfile reads files of YAML, and collects what is wrong with them, each with its line, so that all of it can be
// corrected at once. A File belongs to one goroutine.
package yamlfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// MaxBytes is how long a file may be.
const MaxBytes = 4 << 20

// Read returns a file's text.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, openFailed(path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, openFailed(path, err)
	}
	if len(text) > MaxBytes {
		return nil, errors.New(path + " is longer than " + strconv.Itoa(MaxBytes>>20) + " MiB")
	}
	return text, nil
}

func openFailed(path string, err error) error {
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		err = cause.Err
	}
	return errors.New("cannot read " + path + ": " + err.Error())
}

// File is a file that is being read.
type File struct {
	Path     string
	problems Problems
}

// Root returns the content of the file's only document; nil if it has none, or is wrong.
func (f *File) Root(text []byte) *yaml.Node {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	var document yaml.Node
	err := yaml.Load(text, &document)
	syntax := (*yaml.LoadError)(nil)
	switch {
	case errors.As(err, &syntax) && len(document.Content) == 0 && syntax.Mark.Line > 0:
		f.FailAt(syntax.Mark.Line, "not YAML: "+syntax.Message)
	case len(document.Content) == 0:
	case err != nil:
		f.FailAt(1, "there must be one document; remove what is behind its '---'")
	default:
		return document.Content[0]
	}
	return nil
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
