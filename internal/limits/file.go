package limits

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/funnel"
)

// maxFileBytes is how long the file of limits may be: more than MaxNames limits of MaxWindows windows each take.
const maxFileBytes = 4 << 20

// readFile reads the definitions of a YAML file, all of them or, with the error of each line in which something is wrong, none.
// whole says that it ends with a newline.
func readFile(path string, reading funnel.Reading) (definitions map[string]Definition, whole bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, openFailed(path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, false, openFailed(path, err)
	}
	if len(text) > maxFileBytes {
		return nil, false, errors.New(path + " is longer than " + strconv.Itoa(maxFileBytes>>20) + " MiB")
	}
	definitions, err = parseFile(path, text, reading)
	return definitions, bytes.HasSuffix(text, []byte("\n")), err
}

func openFailed(path string, err error) error {
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		err = cause.Err
	}
	return errors.New("cannot read " + path + ": " + err.Error())
}

// parseFile reads the text of a file:
//
//	limits:
//	  login:
//	    windows:
//	      - {max_burst: 4, count: 5, period: 1m}
//	    shadow: true
//
// A window has a capacity instead of a max_burst, if that is preferred. A period is a number of seconds, or a duration.
func parseFile(path string, text []byte, reading funnel.Reading) (map[string]Definition, error) {
	p := fileReader{path: path, reading: reading, definitions: map[string]Definition{}}
	var document yaml.Node
	err := yaml.Load(text, &document)
	if syntax := (*yaml.LoadError)(nil); errors.As(err, &syntax) && len(document.Content) == 0 && syntax.Mark.Line > 0 {
		p.failAt(syntax.Mark.Line, "not YAML: "+syntax.Message)
	} else if len(document.Content) == 0 {
		p.failAt(1, "nothing is here; write 'limits: {}' if there are to be none")
	} else if err != nil {
		p.failAt(1, "there must be one document; remove what is behind its '---'")
	} else {
		p.readDocument(document.Content[0])
	}
	return p.definitions, p.err()
}

// fileReader collects what is wrong, so that all of it can be corrected at once.
type fileReader struct {
	path        string
	reading     funnel.Reading
	definitions map[string]Definition
	problems    []string
}

func (p *fileReader) failAt(line int, problem string) {
	p.problems = append(p.problems, p.path+":"+strconv.Itoa(line)+": "+problem)
}

func (p *fileReader) fail(n *yaml.Node, problem string) { p.failAt(n.Line, problem) }

const (
	// maxProblems is how many are told.
	maxProblems = 8
	// maxCounted is how many are looked for: a file may use what is wrong by aliases more often than it has bytes.
	maxCounted = 1000
)

func (p *fileReader) err() error {
	if len(p.problems) == 0 {
		return nil
	}
	told := strings.Join(p.problems[:min(len(p.problems), maxProblems)], "; ")
	if more := len(p.problems) - maxProblems; len(p.problems) >= maxCounted {
		told += "; and many more errors"
	} else if more > 0 {
		told += "; and " + strconv.Itoa(more) + " more errors"
	}
	return errors.New(told)
}

// fields visits the entries of a mapping, but for those whose key was there before.
func (p *fileReader) fields(n *yaml.Node, what string, visit func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, what+" must be a mapping")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content) && len(p.problems) < maxCounted; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			p.fail(key, "a key must be a word")
			continue
		}
		if line, ok := seen[key.Value]; ok {
			p.fail(key, quote(key.Value)+" is in line "+strconv.Itoa(line)+" already")
			continue
		}
		seen[key.Value] = key.Line
		if value.Kind == yaml.AliasNode && value.Alias != nil {
			value = value.Alias
		}
		visit(key, value)
	}
}

func (p *fileReader) unknown(key *yaml.Node, known string) {
	p.fail(key, "unknown field "+quote(key.Value)+"; there are "+known)
}

func (p *fileReader) readDocument(n *yaml.Node) {
	found := false
	p.fields(n, "the file", func(key, value *yaml.Node) {
		if key.Value != "limits" {
			p.unknown(key, "limits")
			return
		}
		found = true
		p.fields(value, "limits", p.readLimit)
	})
	if !found && len(p.problems) == 0 {
		p.fail(n, "limits is missing")
	}
	if n := len(p.definitions); n > MaxNames {
		p.failAt(1, strconv.Itoa(n)+" limits; "+strconv.Itoa(MaxNames)+" is the most")
	}
}

func (p *fileReader) readLimit(key, value *yaml.Node) {
	d := Definition{Name: key.Value}
	if err := CheckName([]byte(d.Name)); err != nil {
		p.fail(key, quote(d.Name)+": "+err.Error())
		return
	}
	before := len(p.problems)
	found := false
	p.fields(value, "the limit "+d.Name, func(key, value *yaml.Node) {
		switch key.Value {
		case "windows":
			found = true
			d.Windows = p.readWindows(value)
		case "shadow":
			d.Shadow = p.readBool(value)
		default:
			p.unknown(key, "windows and shadow")
		}
	})
	if len(p.problems) > before {
		return
	}
	if !found {
		p.fail(key, "windows is missing")
	} else if _, err := d.rules(); err != nil {
		p.fail(key, d.Name+": "+err.Error())
	}
	p.definitions[d.Name] = d
}

func (p *fileReader) readWindows(n *yaml.Node) (windows []Window) {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "windows must be a list")
		return nil
	}
	if len(n.Content) > MaxWindows {
		p.fail(n, "a limit must have 1 to "+strconv.Itoa(MaxWindows)+" windows, got "+strconv.Itoa(len(n.Content)))
		return nil
	}
	for _, item := range n.Content {
		if item.Kind == yaml.AliasNode && item.Alias != nil {
			item = item.Alias
		}
		windows = append(windows, p.readWindow(item))
	}
	return windows
}

func (p *fileReader) readWindow(n *yaml.Node) (w Window) {
	before := len(p.problems)
	values := map[string]int64{}
	p.fields(n, "a window", func(key, value *yaml.Node) {
		switch key.Value {
		case "max_burst", "capacity", "count":
			values[key.Value] = p.readInt(value, key.Value)
		case "period":
			values[key.Value] = p.readPeriod(value)
		default:
			p.unknown(key, "max_burst or capacity, count and period")
		}
	})
	burst, byBurst := values["max_burst"]
	capacity, byCapacity := values["capacity"]
	_, hasCount := values["count"]
	_, hasPeriod := values["period"]
	switch {
	case len(p.problems) > before:
		return w
	case byBurst && byCapacity:
		p.fail(n, "a window has max_burst or capacity, not both")
		return w
	case !byBurst && !byCapacity || !hasCount || !hasPeriod:
		p.fail(n, "a window must have max_burst or capacity, count and period")
		return w
	}
	reading, room := p.reading, burst
	if byCapacity {
		reading, room = funnel.Capacity, capacity
	}
	w, err := NewWindow(reading, room, values["count"], values["period"])
	if argument := (*funnel.ArgumentError)(nil); errors.As(err, &argument) && byCapacity && argument.Name == "max_burst" {
		argument.Name = "capacity"
	}
	if err != nil {
		p.fail(n, err.Error())
	}
	return w
}

func (p *fileReader) readInt(n *yaml.Node, name string) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil {
		p.fail(n, name+" must be a decimal number, got "+quote(n.Value))
	}
	return v
}

func (p *fileReader) readPeriod(n *yaml.Node) int64 {
	if sec, err := strconv.ParseInt(n.Value, 10, 64); n.Kind == yaml.ScalarNode && err == nil {
		return sec
	}
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d%time.Second != 0 {
		p.fail(n, "period must be whole seconds, such as 60, 60s, 1m or 24h, got "+quote(n.Value))
	}
	return int64(d / time.Second)
}

func (p *fileReader) readBool(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		p.fail(n, "shadow must be true or false, got "+quote(n.Value))
	}
	return n.Value == "true"
}

const maxQuotedBytes = 64

// quote makes what stands in a file fit for one line.
func quote(s string) string {
	if len(s) > maxQuotedBytes {
		s = s[:maxQuotedBytes] + "..."
	}
	return strconv.Quote(s)
}
