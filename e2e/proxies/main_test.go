// Package proxies tries the recipes of docs/HTTP.md: the files of deploy/ in nginx, HAProxy and Caddy.
package proxies

import (
	"testing"

	"cellserver/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
