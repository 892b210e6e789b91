//go:build !linux && !darwin && !windows

package quota

import "errors"

// FreeSpace returns errors.ErrUnsupported, because it is not implemented for
// this operating system.
func FreeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
