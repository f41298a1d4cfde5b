//go:build !linux

package loops

import "cellserver/internal/edge/server/conn"

// New returns fallback: this system has no event loops.
func New(_ *conn.Host, _ int, fallback conn.Driver) conn.Driver { return fallback }
