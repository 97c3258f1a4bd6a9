# Functions that make a /proc in the folder "proc", for states that no living process has on demand. Tests source it.

# process PID START NAME: makes a process with two mappings, of 2 and 3 pages.
process() {
  mkdir -p "proc/$1/task/$1"
  write "proc/$1/stat" "$1 ($3) S 1 0 0 0 -1 0 100 0 7 0 30 40 0 0 20 0 1 0 $2 0 0"
  write "proc/$1/statm" "100 5 2 0 0 0 0"
  write "proc/$1/io" "rchar: 1
read_bytes: 4096
write_bytes: 8192"
  write "proc/$1/oom_score" 666
  write "proc/$1/oom_score_adj" -17
  printf 'a\0b c\0' >"proc/$1/cmdline"
  write "proc/$1/smaps" "$(mapping 1000-3000 rw-p '[heap]' 8 7)
$(mapping 5000-8000 r--p '/with  blanks (deleted)' 12 5)"
}

# mapping RANGE PERMISSIONS NAME RSS_KIB PSS_KIB: prints its lines in smaps.
mapping() {
  printf '%s %s 00000000 00:00 0 %s\nRss: %s kB\nPss: %s kB\nPrivate_Dirty: %s kB\nSwap: 4 kB\n' "$1" "$2" "$3" "$4" "$5" "$5"
}

# write FILE TEXT: replaces the file at once, so that no reader sees half of it.
write() {
  printf '%s\n' "$2" >proc/new
  mv proc/new "$1"
}
