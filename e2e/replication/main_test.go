// Package replication runs pairs of servers, one of which follows the other.
package replication

import (
	"testing"

	"cellserver/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
