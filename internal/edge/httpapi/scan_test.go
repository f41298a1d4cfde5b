package httpapi

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func parse(body []byte) (*object, error) {
	o := &object{}
	return o, o.parse(body)
}

// members returns what an object has as encoding/json's values.
func members(o *object) map[string]any {
	all := map[string]any{}
	for i := range o.fields {
		all[string(o.fields[i].name)] = anyOf(&o.fields[i].value)
	}
	return all
}

func anyOf(v *value) any {
	switch v.kind {
	case isTrue, isFalse:
		return v.kind == isTrue
	case isNumber:
		return json.Number(v.text)
	case isText:
		return string(v.text)
	case isObject:
		return members(v.object)
	case isArray:
		all := []any{}
		for i := range v.all {
			all = append(all, anyOf(&v.all[i]))
		}
		return all
	default:
		return nil
	}
}

// parseWhole is parse by encoding/json, which reads all of a body before it refuses any of it.
func parseWhole(body []byte) (map[string]any, error) {
	var valid json.RawMessage
	if err := json.Unmarshal(body, &valid); err != nil {
		return nil, bad("the body must be a JSON object: " + err.Error())
	}
	if !utf8.Valid(body) || hasLoneSurrogate(body) {
		return nil, bad("the body has text that is not Unicode")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := readValue(d, "", 0)
	if err != nil {
		return nil, err
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, bad("the body must be a JSON object")
	}
	return o, nil
}

// readValue reads a value of valid JSON.
func readValue(d *json.Decoder, at string, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, bad("the body must be a JSON object: " + err.Error())
	}
	if depth > maxDepth {
		return nil, bad("the body is nested too deeply at " + quote(at))
	}
	switch t {
	case json.Delim('{'):
		return readObject(d, at, depth)
	case json.Delim('['):
		return readArray(d, at, depth)
	default:
		return t, nil
	}
}

func readObject(d *json.Decoder, at string, depth int) (map[string]any, error) {
	o := map[string]any{}
	if at != "" {
		at += "."
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, bad("the body must be a JSON object: " + err.Error())
		}
		name, _ := t.(string)
		if _, twice := o[name]; twice {
			return nil, bad("the field " + quote(at+name) + " is there twice")
		}
		if o[name], err = readValue(d, at+name, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return o, err
}

func readArray(d *json.Decoder, at string, depth int) (all []any, err error) {
	all = []any{}
	for d.More() {
		v, err := readValue(d, at+"["+strconv.Itoa(len(all))+"]", depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	_, err = d.Token()
	return all, err
}

// TestRefusedBodiesAreNotRead behind the fault: most of a body of 64 KB costs nothing.
func TestRefusedBodiesAreNotRead(t *testing.T) {
	repeated := func(before, each string) string {
		return before + strings.Repeat(each, (MaxBodyBytes-len(before))/len(each))
	}
	fields, objects := "", strings.TrimSuffix(strings.Repeat(`{"limit":"a","key":"k"},`, maxChecks), ",")
	for i := range 5000 {
		fields += `"f` + strconv.Itoa(i) + `":1,`
	}
	for _, tt := range []struct {
		name, body string
		most       int // bytes
		want       string
	}{
		{"many checks", repeated(`{"checks":[`, "1,"), 100, "checks must be an array of 1 to 32 objects"},
		{"many empty objects", repeated(`{"checks":[`, "{},"), 120, "checks must be an array of 1 to 32 objects"},
		{"many good checks", repeated(`{"checks":[`, `{"limit":"a","key":"k"},`), 32*24 + 20, "checks must be an array of 1 to 32 objects"},
		{"many fields", "{" + fields, 10, `unknown field "f0"`},
		{"many fields of a check", `{"checks":[{` + fields, 20, `unknown field "checks[0].f0"`},
		{"one field again and again", repeated("{", `"key":1,`), 20, `the field "key" is there twice`},
		{"arrays in arrays", repeated(`{"key":`, "["), 20, "nested too deeply"},
		{"objects in objects", repeated("", `{"late":`), 50, "nested too deeply"},
		{"arrays of arrays of arrays", `{"checks":[` + strings.Repeat("["+strings.Repeat("["+strings.Repeat("1,", 31)+"1],", 31)+"1],", 31), 4096, "more than 1024 values"},
		{"an array", repeated("[", "[],"), 1, "must be a JSON object"},
		{"what is invalid", repeated(`{"key":}`, " "), 10, "must be a JSON object: invalid character"},
		{"what follows", repeated(`{"key":"k"}x`, `{"key":"k"}`), 20, "must be a JSON object: invalid character"},
		{"a check behind good ones", `{"checks":[` + objects + repeated(",", "1,"), 32*24 + 20, "checks must be an array of 1 to 32 objects"},
	} {
		s := scanner{in: []byte(tt.body)}
		err := s.body(&object{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
		if s.at > tt.most || s.values > maxValues+1 {
			t.Errorf("%s: %d bytes and %d values are read", tt.name, s.at, s.values)
		}
		if n := testing.AllocsPerRun(10, func() { _, _ = parse(s.in) }); n > 4*maxValues {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
}

// TestFieldsOfTheDocument are all known.
func TestFieldsOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	found := 0
	var bodies func(v any, isBody bool)
	bodies = func(v any, isBody bool) {
		switch v := v.(type) {
		case []any:
			for _, each := range v {
				bodies(each, isBody)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && isBody {
				at := document
				for word := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					at = at.(map[string]any)[word]
				}
				bodies(at, true)
			}
			for name, each := range v {
				if fields, ok := each.(map[string]any); ok && isBody && name == "properties" {
					for field, of := range fields {
						if found++; !isField(field) {
							t.Errorf("the field %s is not known", field)
						}
						bodies(of, true)
					}
					continue
				}
				bodies(each, isBody || name == "requestBody")
			}
		}
	}
	bodies(document, false)
	if found < 20 {
		t.Errorf("only %d fields are found", found)
	}
}

// agrees compares parse with encoding/json: what it accepts is the same to both, and what only encoding/json
// accepts has a bound or an unknown field against it.
func agrees(t *testing.T, body []byte) {
	t.Helper()
	got, err := parse(body)
	want, wholeErr := parseWhole(body)
	switch {
	case err == nil && (wholeErr != nil || !reflect.DeepEqual(members(got), want)):
		t.Errorf("%s: read as %v, want %v, %v", body, members(got), want, wholeErr)
	case err != nil && wholeErr == nil:
		reason := err.Error()
		for _, known := range []string{"unknown field", "1 to 32 objects", "more than 32 elements", "more than 1024 values"} {
			if strings.Contains(reason, known) {
				return
			}
		}
		t.Errorf("%s: refused: %s", body, reason)
	}
}
