package httpapi

import (
	"net/url"
	"strings"
	"testing"
)

// TestPaths: equivalent paths are one, and others are not.
func TestPaths(t *testing.T) {
	for want, given := range map[string][]string{
		"/login": {
			"/login", "/%6Cogin", "/%6c%6F%67%69%6e", "//login", "///login", "/./login", "/a/../login", "/../login", "/a/b/../../login", "/%2E/login", "/a/%2e%2E/login",
			"/a//../login", "/login?a=/b", "/login#a", "/login?", "http://h/login", "https://u:p@h:1//login?x=y", "HTTP://h/%6Cogin",
		},
		"/login/":               {"/login/", "/login//", "/login/.", "/login/a/..", "/login/%2e"},
		"/Login":                {"/Login", "/%4Cogin"},
		"/login;a=b":            {"/login;a=b"},
		"/login%3Ba=b":          {"/login%3ba=b"},
		"/a%2Fb":                {"/a%2Fb", "/a%2fb"},
		"/a%2F..%2Fb":           {"/a%2f%2e%2e%2fb"},
		"/%2541":                {"/%2541", "/%%34%31"},
		"/%25zz%254%25":         {"/%zz%4%", "/%25zz%4%25"},
		"/%C3%A9%20%7C":         {"/\xc3\xa9 |", "/%c3%a9%20%7c"},
		"/%00":                  {"/\x00", "/%00"},
		"/a%5C..%5Cb":           {"/a\\..\\b"},
		"/":                     {"/", "//", "/.", "/..", "/a/..", "http://h", "http://h?x=/y", "http://h#/y", "/?"},
		"/...":                  {"/...", "/%2e.."},
		"/.a/..b/c.":            {"/.a/..b/c.", "/.a/%2e.b/c%2E"},
		"/a@b:c!$&'()*+,;=~-_.": {"/a@b:c!$&'()*+,;=~-_.", "/a@b:c!$&'()*+,;=%7E-%5f."},
	} {
		for _, uri := range given {
			if got, ok := pathOf(uri); !ok || got != want {
				t.Errorf("%q: got %q, %t, want %q", uri, got, ok, want)
			}
		}
	}
	for _, uri := range []string{"", "?a", "#", "login", "*", "://", "http:/a", "http://"} {
		if got, ok := pathOf(uri); ok {
			t.Errorf("%q has the path %q", uri, got)
		}
	}
}

// TestHosts of a site that are one.
func TestHosts(t *testing.T) {
	for want, given := range map[string][]string{
		"a.example":     {"a.example", "A.Example", "a.example.", "a.example:443", "A.example.:8080", "a.example:"},
		"192.0.2.1":     {"192.0.2.1", "192.0.2.1:80"},
		"[2001:db8::1]": {"[2001:db8::1]", "[2001:DB8:0::1]:443", "2001:db8::1"},
	} {
		for _, host := range given {
			if got, ok := hostOf(host); !ok || got != want {
				t.Errorf("%q: got %q, %t, want %q", host, got, ok, want)
			}
			if got, ok := hostOfURL("https://u:p@" + host + "/a@b"); !ok || got != want {
				t.Errorf("a URL with %q: got %q, %t, want %q", host, got, ok, want)
			}
		}
	}
	for _, host := range []string{"", ".", ":80", "a:b", "a:1:2", "a b", "a,b", "a/b", "u@a", "[::1", "[::1]x", "[a]", "%61", "a?b", "[fe80::1%25lo]"} {
		if got, ok := hostOf(host); ok {
			t.Errorf("%q is the host %q", host, got)
		}
	}
}

// FuzzPath: a normal path stays as it is, and means what the given one means.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/login", "/%6Cogin", "//a/./b/../c%2f;x=1?q#f", "/%%34%31", "http://h/a", "/a/%2e%2E/..", "/\xff %", "/..;/a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		path, ok := pathOf(uri)
		if !ok {
			return
		}
		if again, ok := pathOf(path); !ok || again != path {
			t.Errorf("%q is normalised to %q, and that to %q", uri, path, again)
		}
		if strings.Contains(path, "//") || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") || !strings.HasPrefix(path, "/") {
			t.Errorf("%q has the path %q", uri, path)
		}
		if _, err := url.PathUnescape(path); err != nil {
			t.Errorf("%q has the path %q: %v", uri, path, err)
		}
		plain, err := url.PathUnescape(uri)
		if unescaped, _ := url.PathUnescape(path); err == nil && strings.HasPrefix(uri, "/") && !strings.ContainsAny(uri, "?#") &&
			!strings.Contains(uri, "//") && !strings.Contains(plain, "/.") && unescaped != plain {
			t.Errorf("%q means %q, and its path %q", uri, plain, unescaped)
		}
		if host, ok := hostOf(uri); ok {
			if again, ok := hostOf(host); !ok || again != host {
				t.Errorf("%q is the host %q, and that %q", uri, host, again)
			}
		}
	})
}
