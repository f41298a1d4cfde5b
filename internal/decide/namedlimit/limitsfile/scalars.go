package limitsfile

import (
	"encoding/base64"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/duration"
	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/namedlimit"
)

// readText reads text. A number or another scalar is its text, and !!binary has bytes that are no text.
func (p *fileReader) readText(n *yaml.Node, what string) (text string, ok bool) {
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode, tag == "!!null":
		p.Fail(n, what+" must be text; write it in quotes")
		return "", false
	case tag == "!!binary":
		b, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil {
			p.Fail(n, what+" is !!binary, but not in base64")
			return "", false
		}
		return string(b), true
	}
	return n.Value, true
}

func (p *fileReader) readInt(n *yaml.Node, name string) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil {
		p.Fail(n, name+" must be a decimal number, got "+yamlfile.QuoteWord(n.Value))
	}
	return v
}

func (p *fileReader) readPeriod(n *yaml.Node, name string) int64 {
	if sec, err := strconv.ParseInt(n.Value, 10, 64); n.Kind == yaml.ScalarNode && err == nil {
		return sec
	}
	d, err := duration.Parse(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d%time.Second != 0 {
		p.Fail(n, name+" must be whole seconds, such as 60, 60s, 1m, 24h, 1d or 1w, got "+yamlfile.QuoteWord(n.Value))
	}
	return int64(d / time.Second)
}

func (p *fileReader) readNear(n *yaml.Node) float64 {
	near, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(near > 0 && near <= 1) {
		p.Fail(n, "near must be above 0 and at most 1, such as 0.8, got "+yamlfile.QuoteWord(n.Value))
	}
	return near
}

func (p *fileReader) readUnit(n *yaml.Node) string {
	if err := namedlimit.CheckUnit(n.Value); n.Kind != yaml.ScalarNode || err != nil {
		p.Fail(n, "unit must be usd, of which integers are millionths, or be left out, got "+yamlfile.QuoteWord(n.Value))
	}
	return n.Value
}

func (p *fileReader) readShare(n *yaml.Node) float64 {
	share, err := namedlimit.ReadShare(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		p.Fail(n, "max_reservation must be above 0 and at most 1, such as 0.5, got "+yamlfile.QuoteWord(n.Value))
	}
	return share
}

func (p *fileReader) readBool(n *yaml.Node, name string) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		p.Fail(n, name+" must be true or false, got "+yamlfile.QuoteWord(n.Value))
	}
	return n.Value == "true"
}

// readTrue refuses false, which would say nothing.
func (p *fileReader) readTrue(n *yaml.Node, name string) {
	if n.Kind != yaml.ScalarNode || n.Value != "true" {
		p.Fail(n, name+" must be true, or left out, got "+yamlfile.QuoteWord(n.Value))
	}
}
