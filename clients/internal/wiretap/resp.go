package wiretap

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds for malformed input: the wiretap reads both directions of a connection between a real client and the server.
const (
	maxBulkBytes = 16 << 20
	maxElements  = 1 << 20
	maxDepth     = 16
)

// value is a value of RESP2 or RESP3: its type, text and elements.
type value struct {
	typ      byte
	text     string
	elements []value
}

// readValue reads one value, and skips attributes before it.
func readValue(r *bufio.Reader, depth int) (value, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return value{}, err
	}
	header := strings.TrimSuffix(line, "\r\n")
	if header == line || header == "" {
		return value{}, fmt.Errorf("wiretap: not a line of RESP: %.40q", line)
	}
	v := value{typ: header[0], text: header[1:]}
	switch v.typ {
	case '+', '-', ':', '_', '#', ',', '(':
		return v, nil
	case '$', '=', '!':
		return readBulk(r, v)
	case '*', '~', '>', '%', '|':
		return readElements(r, v, depth)
	}
	return value{}, fmt.Errorf("wiretap: not a type of RESP: %.40q", header)
}

func readBulk(r *bufio.Reader, v value) (value, error) {
	n, err := strconv.Atoi(v.text)
	if err != nil || n < -1 || n > maxBulkBytes {
		return value{}, fmt.Errorf("wiretap: length of a string: %.40q", v.text)
	}
	if n < 0 {
		return value{typ: '_'}, nil
	}
	b := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(r, b); err != nil {
		return value{}, fmt.Errorf("wiretap: read a string: %w", err)
	}
	v.text = string(b[:n])
	return v, nil
}

func readElements(r *bufio.Reader, v value, depth int) (value, error) {
	n, err := strconv.Atoi(v.text)
	if err != nil || n < -1 || n > maxElements || depth >= maxDepth {
		return value{}, fmt.Errorf("wiretap: number of elements: %.40q", v.text)
	}
	if v.typ == '%' || v.typ == '|' {
		n *= 2
	}
	for range n {
		element, err := readValue(r, depth+1)
		if err != nil {
			return value{}, err
		}
		v.elements = append(v.elements, element)
	}
	if v.typ == '|' {
		return readValue(r, depth+1)
	}
	return v, nil
}
