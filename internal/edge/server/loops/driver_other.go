//go:build !linux

package loops

import "cellserver/internal/edge/server/conn"

// New returns the driver that it was given: there are no event loops for this system.
func New(_ *conn.Host, _ int, others conn.Driver) conn.Driver { return others }
