package main

import (
	"time"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/keep/persist"
	"cellserver/internal/redis/commands/admin"
)

// durabilitySettings are Redis's, by what the flags come to, and the flags.
func durabilitySettings(o *options) []admin.Setting {
	appendFsync := "everysec"
	if o.syncInterval == 0 {
		appendFsync = "always"
	} else if time.Duration(o.syncInterval) == persist.NoSync {
		appendFsync = "no"
	}
	return []admin.Setting{
		admin.Constant("appendfsync", appendFsync),
		admin.Constant("appendonly", yesNo(o.dataDir != "")),
		admin.Constant("data-dir", o.dataDir),
		admin.Constant("data-recover", yesNo(o.dataRecover)),
		admin.Constant("dir", absolute(o.dataDir)),
		admin.Constant("fsync-interval", o.syncInterval.String()),
		admin.Constant("fsync-timeout", flagvalue.FormatDuration(o.syncTimeout)),
		admin.Constant("save", ""),
	}
}
