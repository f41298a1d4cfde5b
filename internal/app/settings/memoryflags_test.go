package settings

import (
	"testing"
)

// TestMaxMemoryOptions requires each error to say what to do.
func TestMaxMemoryOptions(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"--maxmemory=lots", `--maxmemory takes auto or a size, such as 150mb; got "lots"`},
		{"--maxmemory=-1", `--maxmemory takes auto or a size, such as 150mb; got "-1"`},
		{"--maxmemory=1mb", "--maxmemory must be 0 for no maximum, or at least 48mb, got 1048576 bytes"},
		{"--maxmemory-policy=allkeys-lfu", `--maxmemory-policy takes volatile-ttl or noeviction; got "allkeys-lfu"`},
		{"--maxmemory-policy=x", `--maxmemory-policy takes volatile-ttl or noeviction; got "x"`},
	} {
		if _, err := parseOptions([]string{tt.flags}); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.flags, err, tt.want)
		}
	}
	for _, flags := range []string{"--maxmemory=auto", "--maxmemory=0", "--maxmemory=48mb", "--maxmemory=1G", "--maxmemory-policy=noeviction"} {
		if _, err := parseOptions([]string{flags}); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
