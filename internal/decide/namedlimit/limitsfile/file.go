package limitsfile

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
)

// operatorsFile is a YAML file of limits, a namedlimit.File.
type operatorsFile struct {
	path    string
	reading funnel.Reading
}

func (f operatorsFile) Path() string { return f.path }

// Read returns all definitions of the file, or none and the errors of all lines. whole reports a final
// newline.
func (f operatorsFile) Read() (definitions map[string]namedlimit.Definition, whole bool, err error) {
	text, err := yamlfile.Read(f.path)
	if err != nil {
		return nil, false, err
	}
	definitions, err = parseFile(f.path, text, f.reading)
	return definitions, bytes.HasSuffix(text, []byte("\n")), err
}

// parseFile parses a file:
//
//	limits:
//	  login:
//	    windows:
//	      - {max_burst: 4, count: 5, period: 1m}
//	    shadow: true
//
// capacity may replace max_burst. A period is a number of seconds or a duration.
func parseFile(path string, text []byte, reading funnel.Reading) (map[string]namedlimit.Definition, error) {
	p := fileReader{File: yamlfile.File{Path: path}, reading: reading, definitions: map[string]namedlimit.Definition{}}
	if root := p.Root(text); root != nil {
		p.readDocument(root)
	} else if p.Count() == 0 {
		p.FailAt(1, "the file is empty; write 'limits: {}' for no limits")
	}
	return p.definitions, p.Err()
}

type fileReader struct {
	yamlfile.File
	reading     funnel.Reading
	definitions map[string]namedlimit.Definition
}

func (p *fileReader) unknown(key *yaml.Node, known string) {
	p.Fail(key, "unknown field "+yamlfile.Quote(key.Value)+"; there are "+known)
}

func (p *fileReader) readDocument(n *yaml.Node) {
	found := false
	p.Fields(n, "the file", func(key, value *yaml.Node) {
		if key.Value != "limits" {
			p.unknown(key, "limits")
			return
		}
		found = true
		p.Fields(value, "limits", p.readLimit)
	})
	if !found && p.Count() == 0 {
		p.Fail(n, "limits is missing")
	}
	if n := len(p.definitions); n > namedlimit.MaxNames {
		p.FailAt(1, strconv.Itoa(n)+" limits; the maximum is "+strconv.Itoa(namedlimit.MaxNames))
	}
}

func (p *fileReader) readLimit(key, value *yaml.Node) {
	d := namedlimit.Definition{Name: key.Value}
	if err := namedlimit.CheckName([]byte(d.Name)); err != nil {
		p.Fail(key, yamlfile.Quote(d.Name)+": "+err.Error())
		return
	}
	before := p.Count()
	found := false
	p.Fields(value, "the limit "+d.Name, func(key, value *yaml.Node) {
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
	if p.Count() > before {
		return
	}
	if !found {
		p.Fail(key, "windows is missing")
	} else if err := d.Check(); err != nil {
		p.Fail(key, d.Name+": "+err.Error())
	}
	p.definitions[d.Name] = d
}

func (p *fileReader) readWindows(n *yaml.Node) (windows []namedlimit.Window) {
	if n.Kind != yaml.SequenceNode {
		p.Fail(n, "windows must be a list")
		return nil
	}
	if len(n.Content) > namedlimit.MaxWindows {
		p.Fail(n, "a limit must have 1 to "+strconv.Itoa(namedlimit.MaxWindows)+" windows, got "+strconv.Itoa(len(n.Content)))
		return nil
	}
	for _, item := range n.Content {
		windows = append(windows, p.readWindow(yamlfile.Resolve(item)))
	}
	return windows
}

func (p *fileReader) readWindow(n *yaml.Node) (w namedlimit.Window) {
	before := p.Count()
	values := map[string]int64{}
	p.Fields(n, "a window", func(key, value *yaml.Node) {
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
	case p.Count() > before:
		return w
	case byBurst && byCapacity:
		p.Fail(n, "a window has max_burst or capacity, not both")
		return w
	case !byBurst && !byCapacity || !hasCount || !hasPeriod:
		p.Fail(n, "a window must have max_burst or capacity, count and period")
		return w
	}
	reading, room := p.reading, burst
	if byCapacity {
		reading, room = funnel.Capacity, capacity
	}
	w, err := namedlimit.NewWindow(reading, room, values["count"], values["period"])
	if argument := (*funnel.ArgumentError)(nil); errors.As(err, &argument) && byCapacity && argument.Name == "max_burst" {
		argument.Name = "capacity"
	}
	if err != nil {
		p.Fail(n, err.Error())
	}
	return w
}

func (p *fileReader) readInt(n *yaml.Node, name string) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil {
		p.Fail(n, name+" must be a decimal number, got "+yamlfile.Quote(n.Value))
	}
	return v
}

func (p *fileReader) readPeriod(n *yaml.Node) int64 {
	if sec, err := strconv.ParseInt(n.Value, 10, 64); n.Kind == yaml.ScalarNode && err == nil {
		return sec
	}
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d%time.Second != 0 {
		p.Fail(n, "period must be whole seconds, such as 60, 60s, 1m or 24h, got "+yamlfile.Quote(n.Value))
	}
	return int64(d / time.Second)
}

func (p *fileReader) readBool(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		p.Fail(n, "shadow must be true or false, got "+yamlfile.Quote(n.Value))
	}
	return n.Value == "true"
}
