package memory

import "testing"

func TestPart(t *testing.T) {
	for _, tt := range []struct {
		text  string
		of    int64
		bytes int64
	}{
		{"0", 1 << 30, 0}, {"100", 0, 100}, {"7b", 0, 7}, {"1k", 0, 1000}, {"1KB", 0, 1024}, {"2m", 0, 2_000_000}, {"64mb", 5, 64 << 20},
		{"1g", 0, 1_000_000_000}, {"1gb", 0, 1 << 30}, {"0%", 1 << 30, 0}, {"25%", 0, 0}, {"25%", 150, 37}, {"100%", 1<<63 - 1, 1<<63 - 1},
	} {
		var m Part
		if err := m.Set(tt.text); err != nil || m.Of(tt.of) != tt.bytes || m.String() != tt.text {
			t.Errorf("%q of %d: %d, %v", tt.text, tt.of, m.Of(tt.of), err)
		}
	}
	for _, text := range []string{"", "x", "-1", "mb", "1tb", "1bk", "101%", "-1%", "%", "1.5gb", "9223372036854775808", "9223372036854775807k"} {
		var m Part
		if err := m.Set(text); err == nil {
			t.Errorf("%q was taken for %d bytes", text, m.Of(0))
		}
	}
}
