package app

import (
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/keep/persist"
	"cellserver/internal/redis/commands/admin"
)

// durabilitySettings are Redis's, by what the flags come to, and the flags.
func durabilitySettings(o *settings.Options) []admin.Setting {
	appendFsync := "everysec"
	if o.SyncInterval == 0 {
		appendFsync = "always"
	} else if time.Duration(o.SyncInterval) == persist.NoSync {
		appendFsync = "no"
	}
	return []admin.Setting{
		admin.Constant("appendfsync", appendFsync),
		admin.Constant("appendonly", yesNo(o.DataDir != "")),
		admin.Constant("data-dir", o.DataDir),
		admin.Constant("data-recover", yesNo(o.DataRecover)),
		admin.Constant("dir", absolute(o.DataDir)),
		admin.Constant("fsync-interval", o.SyncInterval.String()),
		admin.Constant("fsync-timeout", flagvalue.FormatDuration(o.SyncTimeout)),
		admin.Constant("save", ""),
	}
}
