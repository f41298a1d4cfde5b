package app

import (
	"log/slog"
	"testing"
)

// TestConfigCheckOpensNoStore: opening a pool and closing it at once fails by chance.
func TestConfigCheckOpensNoStore(t *testing.T) {
	o, err := optionsOf("--store=redis-cluster://127.0.0.1:1,127.0.0.1:2")
	if err != nil {
		t.Fatal(err)
	}
	for range 60_000 {
		if wrong := checkFiles(o, slog.New(slog.DiscardHandler)); wrong != nil {
			t.Fatal(wrong)
		}
	}
}
