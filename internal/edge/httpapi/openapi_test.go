package httpapi_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is openapi.json, which describes every answer.
type document struct {
	root     map[string]any
	mu       sync.Mutex // guards compiler
	compiler *jsonschema.Compiler
}

var readDocument = sync.OnceValues(func() (*document, error) {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("openapi.json", v); err != nil {
		return nil, err
	}
	return &document{root: v.(map[string]any), compiler: c}, nil
})

func theDocument(t testing.TB) *document {
	t.Helper()
	d, err := readDocument()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// at returns what a JSON pointer finds, with references followed, and the pointer to it.
func (d *document) at(parts ...string) (map[string]any, []string) {
	v, path := d.root, []string{}
	for _, part := range parts {
		next, ok := v[part].(map[string]any)
		if !ok {
			return nil, nil
		}
		v, path = next, append(path, part)
		if ref, ok := v["$ref"].(string); ok {
			return d.at(append(strings.Split(strings.TrimPrefix(ref, "#/"), "/"), parts[len(path):]...)...)
		}
	}
	return v, path
}

func (d *document) schema(t testing.TB, parts []string) *jsonschema.Schema {
	t.Helper()
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	pointer := "openapi.json#"
	for _, part := range parts {
		pointer += "/" + escape.Replace(part)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.compiler.Compile(pointer)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (d *document) matches(t testing.TB, text []byte, parts ...string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return d.schema(t, parts).Validate(v)
}

// pathOf returns the document's path of a request's, or "".
func (d *document) pathOf(path string) string {
	if rest, ok := strings.CutPrefix(path, "/t/"); ok {
		_, after, _ := strings.Cut(rest, "/")
		path = "/" + after
	}
	given := strings.Split(path, "/")
	paths, _ := d.at("paths")
	for known := range paths {
		parts := strings.Split(known, "/")
		same := func(i int) bool { return parts[i] == given[i] || parts[i] == "{name}" && given[i] != "" }
		if len(parts) == len(given) && !slices.ContainsFunc(indices(parts), func(i int) bool { return !same(i) }) {
			return known
		}
	}
	return ""
}

func indices(of []string) (all []int) {
	for i := range of {
		all = append(all, i)
	}
	return all
}

// validate holds an answer, and the body of a request that was decided, to the document.
func validate(t testing.TB, method, path string, body []byte, got *http.Response, text []byte) {
	t.Helper()
	d := theDocument(t)
	status := strconv.Itoa(got.StatusCode)
	known := d.pathOf(path)
	at := []string{"paths", known, strings.ToLower(method), "responses", status}
	if operation, _ := d.at("paths", known, strings.ToLower(method)); operation == nil {
		name := map[string]string{"400": "BadRequest", "401": "Unauthorized", "403": "Forbidden", "404": "NotFound", "405": "NotAllowed", "503": "Unavailable"}[status]
		at = []string{"components", "responses", name}
	}
	response, at := d.at(at...)
	if response == nil {
		t.Errorf("%s %s: %s is not in openapi.json: %s", method, path, status, text)
		return
	}
	contents, _ := d.at(append(slices.Clone(at), "content")...)
	kind := got.Header.Get("Content-Type")
	if contents[kind] == nil {
		t.Errorf("%s %s: %s has Content-Type %q", method, path, status, kind)
		return
	}
	if method != http.MethodHead {
		if err := d.matches(t, text, append(slices.Clone(at), "content", kind, "schema")...); err != nil {
			t.Errorf("%s %s: %s: %v", method, path, text, err)
		}
	} else if len(text) > 0 {
		t.Errorf("HEAD %s has a body: %s", path, text)
	}
	if got.ContentLength < 0 || method != http.MethodHead && got.ContentLength != int64(len(text)) {
		t.Errorf("%s %s: Content-Length %d for %d bytes", method, path, got.ContentLength, len(text))
	}
	d.validateHeaders(t, at, got)
	if method == http.MethodPost && (got.StatusCode == http.StatusOK || got.StatusCode == http.StatusTooManyRequests) {
		if err := d.matches(t, body, "paths", known, "post", "requestBody", "content", "application/json", "schema"); err != nil {
			t.Errorf("%s was accepted, but: %v", body, err)
		}
	}
}

func (d *document) validateHeaders(t testing.TB, at []string, got *http.Response) {
	t.Helper()
	own := []string{"Date", "Content-Type", "Content-Length", "Connection"}
	headers, _ := d.at(append(slices.Clone(at), "headers")...)
	for name := range headers {
		h, of := d.at(append(slices.Clone(at), "headers", name)...)
		own = append(own, http.CanonicalHeaderKey(name))
		values := got.Header.Values(name)
		if len(values) == 0 && h["required"] == true {
			t.Errorf("the header %s is missing", name)
		}
		for _, value := range values {
			if err := d.schema(t, append(slices.Clone(of), "schema")).Validate(value); err != nil {
				t.Errorf("%s: %q: %v", name, value, err)
			}
		}
	}
	for name := range got.Header {
		if !slices.Contains(own, name) {
			t.Errorf("%v: the header %s is not in openapi.json", at, name)
		}
	}
}

// TestDocument: every reference leads somewhere, and every schema compiles.
func TestDocument(t *testing.T) {
	t.Parallel()
	d := theDocument(t)
	schemas, _ := d.at("components", "schemas")
	for name := range schemas {
		d.schema(t, []string{"components", "schemas", name})
	}
	h := start(t, options{})
	got := h.send(t, "GET", "/v1/openapi.json", "")
	file, err := os.ReadFile("openapi.json")
	if err != nil || got.body != string(file) {
		t.Errorf("served another document: %v", err)
	}
	paths, _ := d.at("paths")
	for path := range paths { // the answer tells an unknown path from a wrong request
		method := "GET"
		if operation, _ := d.at("paths", path, "post"); operation != nil {
			method = "POST"
		}
		if got := h.send(t, method, strings.ReplaceAll(path, "{name}", "nosuch"), ""); got.status == 404 && strings.Contains(got.body, "no such path") {
			t.Errorf("%s: %s", path, got.body)
		}
	}
}
