package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/limiter"
)

// logTrace reads an access log; each line requests units for the key that its fields make.
type logTrace struct {
	lines
	rule     limiter.Rule
	quantity int64
	keys     []string
	parse    func(line []byte) (entry, error)
}

type entry interface {
	atNs() (int64, error)
	// field returns a field by its nginx variable.
	field(name string) (string, error)
}

// clientAddress is the default key field.
const clientAddress = "remote_addr"

func newLogTrace(in *input, o Options) (*logTrace, error) {
	t := &logTrace{lines: newLines(in, o), quantity: 1, keys: o.KeyFields}
	if len(t.keys) == 0 {
		t.keys = []string{clientAddress}
	}
	if o.Quantity != nil {
		t.quantity = *o.Quantity
	}
	t.parse = parseCombined
	if o.Format == JSONLines {
		t.parse = func(line []byte) (entry, error) { return parseJSON(line, o.TimeField) }
	} else if o.TimeField != "" {
		return nil, errors.New("--time-field names a field of a log in JSON; a combined log has one time")
	}
	var err error
	if t.rule, err = o.fixed(); err != nil || !o.Debit {
		return t, err
	}
	o.debit(&t.rule, t.quantity)
	return t, o.checkDebit(t.quantity)
}

func (t *logTrace) columns() []string { return []string{"at", "key"} }

func (t *logTrace) read(r *row) error {
	line, err := t.next()
	if err != nil {
		return err
	}
	return t.bad(t.fill(line, r))
}

func (t *logTrace) fill(line []byte, r *row) error {
	e, err := t.parse(line)
	if err != nil {
		return err
	}
	if r.atNs, err = e.atNs(); err != nil {
		return err
	}
	var key strings.Builder
	for i, name := range t.keys {
		value, err := e.field(name)
		if err != nil {
			return err
		}
		if i > 0 {
			key.WriteByte(' ')
		}
		key.WriteString(value)
	}
	r.key, r.rule, r.quantity = key.String(), t.rule, t.quantity
	r.fields = append(r.fields, time.Unix(0, r.atNs).UTC().Format(time.RFC3339Nano), r.key)
	return nil
}

// combinedFields are the fields of nginx's and Apache's combined format in order, and one that nginx's main
// format adds.
func combinedFields() []string {
	return []string{"remote_addr", "", "remote_user", "time_local", "request", "status", "body_bytes_sent", "http_referer",
		"http_user_agent", "http_x_forwarded_for"}
}

const (
	minCombined = 7 // of the common format
	userField   = 2
)

// combined is a line of a combined log.
type combined struct{ values []string }

var errCombined = errors.New(`want a line of a combined log: address - user [time] "request" status bytes "referer" "user agent"`)

func parseCombined(line []byte) (entry, error) {
	rest := string(line)
	values := make([]string, 0, 10)
	for rest != "" {
		cut := cutField
		if len(values) == userField {
			cut = cutUser
		}
		value, after, ok := cut(rest)
		if !ok {
			return nil, errCombined
		}
		values, rest = append(values, value), after
	}
	if len(values) < minCombined || !strings.Contains(values[3], ":") {
		return nil, errCombined
	}
	return combined{values}, nil
}

// cutUser cuts the user, which the client chooses and may contain spaces.
func cutUser(s string) (value, rest string, ok bool) {
	value, rest, ok = strings.Cut(s, " [")
	return unescapeLog(value), "[" + rest, ok && value != ""
}

// cutField cuts a word, or a text in quotes or brackets.
func cutField(s string) (value, rest string, ok bool) {
	switch s[0] {
	case '"':
		end := 1
		for end < len(s) && s[end] != '"' {
			if s[end] == '\\' { // Apache escapes quotes
				end++
			}
			end++
		}
		if end >= len(s) {
			return "", "", false
		}
		value, rest = unescapeLog(s[1:end]), s[end+1:]
	case '[':
		value, rest, ok = strings.Cut(s[1:], "]")
		if !ok {
			return "", "", false
		}
	default:
		value, rest, _ = strings.Cut(s, " ")
		return unescapeLog(value), rest, value != ""
	}
	if rest == "" {
		return value, "", true
	}
	rest, ok = strings.CutPrefix(rest, " ")
	return value, rest, ok
}

// unescapeLog decodes nginx's \xHH and Apache's \" and \\.
func unescapeLog(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		if s[i] == 'x' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b, i = append(b, byte(c)), i+2
				continue
			}
		}
		if s[i] != '"' && s[i] != '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}

// isCombined reports whether a line looks like a combined log's.
func isCombined(line []byte) bool {
	e, err := parseCombined(line)
	if err != nil {
		return false
	}
	_, err = e.atNs()
	return err == nil
}

const logTime = "02/Jan/2006:15:04:05 -0700"

func (c combined) atNs() (int64, error) { return parseLogTime(c.values[3]) }

func parseLogTime(text string) (int64, error) {
	at, err := time.Parse(logTime, text)
	atNs := int64(0)
	if err == nil {
		atNs, err = unixNs(at)
	}
	return atNs, timeError(text, err, "want one such as 14/Nov/2023:22:13:20 +0000")
}

func (c combined) field(name string) (string, error) {
	for i, known := range combinedFields() {
		if known == name && i < len(c.values) {
			return c.values[i], nil
		}
	}
	if value, ok := ofRequest(c.values[4], name); ok {
		return value, nil
	}
	return "", fmt.Errorf("the line has no %s; it has %s, request_method, request_uri, uri and server_protocol", quoted(name),
		strings.Join(append(combinedFields()[:1:1], combinedFields()[2:min(len(c.values), len(combinedFields()))]...), ", "))
}

// ofRequest returns a part of a request line such as GET /a?b HTTP/1.1. A malformed line is all method.
func ofRequest(line, name string) (value string, ok bool) {
	method, rest, _ := strings.Cut(line, " ")
	uri, protocol := rest, ""
	if i := strings.LastIndex(rest, " "); i >= 0 {
		uri, protocol = rest[:i], rest[i+1:]
	}
	switch name {
	case "request_method":
		return method, true
	case "request_uri":
		return uri, true
	case "uri":
		path, _, _ := strings.Cut(uri, "?")
		return path, true
	case "server_protocol":
		return protocol, true
	}
	return "", false
}

type jsonEntry struct {
	fields    map[string]json.RawMessage
	timeField string
}

var errJSON = errors.New("want an object in JSON on one line, as nginx writes with escape=json")

func parseJSON(line []byte, timeField string) (entry, error) {
	e := jsonEntry{timeField: timeField}
	if err := json.Unmarshal(line, &e.fields); err != nil || e.fields == nil {
		return nil, errJSON
	}
	return e, nil
}

// timeFields are the default time fields, the most exact first.
func timeFields() []string {
	return []string{"msec", "time_iso8601", "time_local", "@timestamp", "timestamp", "time"}
}

func (e jsonEntry) atNs() (int64, error) {
	names := timeFields()
	if e.timeField != "" {
		names = []string{e.timeField}
	}
	for _, name := range names {
		if _, ok := e.fields[name]; !ok {
			continue
		}
		text, err := e.field(name)
		if err != nil {
			return 0, err
		}
		atNs, err := parseTime(text)
		if err != nil && strings.Contains(text, "/") {
			atNs, err = parseLogTime(text)
		}
		return atNs, inColumn(name, err)
	}
	return 0, fmt.Errorf("the line has no time: no field %s; name another by --time-field", strings.Join(names, ", "))
}

func (e jsonEntry) field(name string) (string, error) {
	raw, ok := e.fields[name]
	if ok {
		return jsonText(name, raw)
	}
	if raw, found := e.fields["request"]; found {
		line, err := jsonText("request", raw)
		if err != nil {
			return "", err
		}
		if value, ok := ofRequest(line, name); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("the line has no field %s", quoted(name))
}

// jsonText returns a string or number as text, and "" for null.
func jsonText(name string, raw json.RawMessage) (text string, err error) {
	switch raw[0] {
	case '"':
		err = json.Unmarshal(raw, &text)
		return text, err
	case '{', '[':
		return "", fmt.Errorf("%s is neither text nor a number", quoted(name))
	}
	if bytes.Equal(raw, []byte("null")) {
		return "", nil
	}
	return string(raw), nil
}
