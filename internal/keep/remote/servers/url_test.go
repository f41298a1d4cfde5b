package servers

import (
	"slices"
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		url, name, hosts, user, password, master string
		db                                       int
	}{
		{"redis://a", "redis://a:6379", "a:6379", "", "", "", 0},
		{"redis://a:1/2", "redis://a:1/2", "a:1", "", "", "", 2},
		{"redis://:p%40%2F%3F@a/0", "redis://a:6379", "a:6379", "", "p@/?", "", 0},
		{"rediss://me:p:@/w@a:1", "rediss://a:1", "a:1", "me", "p:@/w", "", 0},
		{"redis://[::1]", "redis://[::1]:6379", "[::1]:6379", "", "", "", 0},
		{"redis://[::1]:2", "redis://[::1]:2", "[::1]:2", "", "", "", 0},
		{"redis-cluster://a,b:2,[::1]:3", "redis-cluster://a:6379,b:2,[::1]:3", "a:6379,b:2,[::1]:3", "", "", "", 0},
		{"rediss-cluster://u:p@a,b/0", "rediss-cluster://a:6379,b:6379", "a:6379,b:6379", "u", "p", "", 0},
		{"redis-sentinel://u:p@a,b:2/main", "redis-sentinel://a:26379,b:2/main", "a:26379,b:2", "u", "p", "main", 0},
		{"rediss-sentinel://a/main/3", "rediss-sentinel://a:26379/main/3", "a:26379", "", "", "main", 3},
	} {
		p, err := parse(tt.url, "")
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		if p.String() != tt.name || !slices.Equal(p.hosts, strings.Split(tt.hosts, ",")) || p.user != tt.user ||
			p.password != tt.password || p.master != tt.master || p.db != tt.db {
			t.Errorf("%s is %+v, called %s", tt.url, p, p.String())
		}
	}
}

func TestWrongURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                              "a store's URL is redis://",
		"hunter2":                       "a store's URL is redis://",
		"http://:hunter2@a":             "a store's URL is redis://",
		"redis//:hunter2@a":             "a store's URL is redis://",
		"redisss://:hunter2@a":          "a store's URL is redis://",
		"redis://:hunter2?@a":           "has a ? or #",
		"redis://hunter2@a":             "as user:password",
		"redis://:hunter2%zz@a":         "write it as %25",
		"redis://me:@a":                 "no password",
		"redis://:hunter2@":             "a host is missing",
		"redis://:hunter2@a,b":          "several hosts",
		"redis://:hunter2@a:x":          "a port is not",
		"redis://:hunter2@a:0":          "a port is not",
		"redis://:hunter2@::1":          "in brackets",
		"redis://:hunter2@a/b":          "the number of a database",
		"redis://:hunter2@a/1/2":        "the number of a database",
		"redis-cluster://:hunter2@a/1":  "database 0 only",
		"redis-sentinel://:hunter2@a":   "name of the master",
		"redis-sentinel://:hunter2@a//": "name of the master",
	} {
		_, err := Open(Config{URL: url})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is refused with %v, want %s", url, err, want)
		} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s is refused with %q", url, err)
		}
	}
}

func FuzzURL(f *testing.F) {
	f.Add("redis://me:secret@[::1]:6379/1")
	f.Add("redis-sentinel://a,b:2/main/3")
	f.Fuzz(func(t *testing.T, url string) {
		p, err := parse(url, "")
		if err != nil {
			return
		}
		again, err := parse(p.String(), "")
		if err != nil || again.String() != p.String() || !slices.Equal(again.hosts, p.hosts) {
			t.Errorf("%q is %s, which is %v, %v", url, p.String(), again, err)
		}
	})
}
