package admin

import "testing"

func TestHumanBytes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1 << 10: "1.00K", 1536: "1.50K", 1<<20 - 1<<10: "1023.00K", 1 << 20: "1.00M", 5 << 29: "2.50G",
		1 << 30: "1.00G", 1 << 40: "1.00T", 1 << 50: "1024.00T",
	} {
		if got := humanBytes(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
