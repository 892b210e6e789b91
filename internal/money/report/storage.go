package report

// TeamStorage is the storage that a team uses now.
type TeamStorage struct {
	TeamID, Name string
	Used         int64  // bytes
	Limit        *int64 // the limit of this team; nil: the general limit
}

// maxStorageTeams is the number of teams that Storage returns at most.
const maxStorageTeams = 1000
