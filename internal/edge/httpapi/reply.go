package httpapi

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// pairs is a map of RESP3 in its order.
type pairs []any // keys and values alternate

// readReply reads a whole reply in RESP3: text, int64, json.Number, bool, nil, []any or pairs.
func readReply(in []byte) (any, error) {
	v, rest, ok := readOne(in)
	if !ok || len(rest) > 0 {
		return nil, errReply
	}
	return v, nil
}

func readOne(in []byte) (v any, rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(in, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return nil, nil, false
	}
	text := string(line[1:])
	switch line[0] {
	case '+':
		return text, rest, true
	case '_':
		return nil, rest, true
	case '#':
		return text == "t", rest, true
	case ',', '(':
		return json.Number(text), rest, json.Valid(line[1:])
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, nil, false
	}
	switch line[0] {
	case ':':
		return n, rest, true
	case '$', '=':
		return readBulk(rest, n)
	case '*', '~':
		v, rest, ok = readElements(rest, n)
		return v, rest, ok
	case '%':
		all, rest, ok := readElements(rest, 2*n)
		return pairs(all), rest, ok
	}
	return nil, nil, false
}

func readBulk(in []byte, n int64) (v any, rest []byte, ok bool) {
	if n < 0 || n > int64(len(in)) || !bytes.HasPrefix(in[n:], []byte("\r\n")) {
		return nil, nil, false
	}
	return string(in[:n]), in[n+2:], true
}

func readElements(in []byte, n int64) (all []any, rest []byte, ok bool) {
	if n < 0 || n > int64(len(in)) {
		return nil, nil, false
	}
	all = make([]any, n)
	for i := range all {
		if all[i], in, ok = readOne(in); !ok {
			return nil, nil, false
		}
	}
	return all, in, true
}

// appendJSON appends a reply as JSON.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendText(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case json.Number:
		return append(b, v...)
	case bool:
		return strconv.AppendBool(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e)
		}
		return append(b, ']')
	case pairs:
		b = append(b, '{')
		for i, e := range v {
			if i > 0 {
				b = append(b, ",:"[i%2])
			}
			b = appendJSON(b, e)
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}
