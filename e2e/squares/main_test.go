// Package squares compares servers with a model of named limits, by random calls: each algorithm beside
// overrides, plans, shadows, debits, reloads and the rest, through each door and over each store.
package squares

import (
	"testing"

	"cellserver/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
