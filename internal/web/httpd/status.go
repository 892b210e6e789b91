package httpd

import (
	"net/http"

	"atelier/internal/base/fault"
)

// Status maps fault codes to HTTP statuses. It is the only such mapping.
var Status = map[fault.Code]int{
	fault.Unauthenticated:         http.StatusUnauthorized,
	fault.TokenInvalid:            http.StatusUnauthorized,
	fault.AuthorizationPending:    http.StatusPreconditionRequired,
	fault.SlowDown:                http.StatusBadRequest,
	fault.DeviceCodeExpired:       http.StatusGone,
	fault.Unavailable:             http.StatusServiceUnavailable,
	fault.RateLimited:             http.StatusTooManyRequests,
	fault.ActiveRunCap:            http.StatusTooManyRequests,
	fault.PluginNotAllowed:        http.StatusForbidden,
	fault.Forbidden:               http.StatusForbidden,
	fault.EmailNotVerified:        http.StatusForbidden,
	fault.AccountSelectionInvalid: http.StatusBadRequest,
	fault.Invalid:                 http.StatusBadRequest,
	fault.NotFound:                http.StatusNotFound,
	fault.ToolSchemaStale:         http.StatusConflict,
	fault.IdempotencyKeyConflict:  http.StatusConflict,
	fault.PreconditionFailed:      http.StatusPreconditionFailed,
	fault.InsufficientBalance:     http.StatusPaymentRequired,
	fault.NumResultsLimit:         http.StatusBadRequest,
	fault.ContentPolicyViolation:  http.StatusUnprocessableEntity,
	fault.TooManyInputFiles:       http.StatusRequestEntityTooLarge,
	fault.UploadTooLarge:          http.StatusRequestEntityTooLarge,
	fault.UploadOffsetConflict:    http.StatusConflict,
	fault.UploadChecksumMismatch:  460, // "Checksum Mismatch" of the tus protocol
	fault.PayloadTooLarge:         http.StatusRequestEntityTooLarge,
	fault.StorageQuotaExceeded:    http.StatusRequestEntityTooLarge,
	fault.UnsupportedMediaType:    http.StatusUnsupportedMediaType,
	fault.MethodNotAllowed:        http.StatusMethodNotAllowed,
	fault.RequestTimeout:          http.StatusRequestTimeout,
	fault.Internal:                http.StatusInternalServerError,
}
