package sentinel

import (
	"testing"

	"cellserver/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
