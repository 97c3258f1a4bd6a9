# collector(FILE): the pid of the collector that writes this file of the folder. It is waited for: it begins beside the
# program, and until it has, others may have the file open too.
use strict;

sub collector {
  my $wanted = readlink("/proc/self/cwd") . "/$_[0]";
  my $give_up = time + 240;
  while (time < $give_up) {
    for my $folder (glob "/proc/[0-9]*") {
      open(my $name, "<", "$folder/comm") or next;
      (<$name> // "") =~ /^cmttrace-col/ or next;
      return $folder =~ s/\D//gr if grep { (readlink // "") eq $wanted } glob "$folder/fd/*";
    }
    select undef, undef, undef, 0.01;
  }
  die "nobody writes $_[0]\n";
}
1;
