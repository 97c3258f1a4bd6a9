# Writes two traces of one program, before.trace and after.trace. A test sources this file. In the program, main calls
# parse, into which push is inlined in before.trace only. It also calls load, which is the same in both traces, and a
# function with a hostile name, which grows. One more function is gone in after.trace.
stacks() {
  echo '#cmt text=1'
  echo "#cmt program=app"
  echo "#cmt command=\"app --$1 <b>\""
  echo "#module 1 begin=$2 end=9000 bias=$2 path=/opt/app-$1"
  for i in 1 2 3 4 5; do echo "#frame $i module=1 address=$(($2 + i))"; done
  echo '#name 1 function=main file=app.cpp line=30'
  echo '#name 3 function=load file=app.cpp line=50'
  echo "#name 4 function=\"<img src=x onerror='window.ran = true'>\""
  echo '#node 1 parent=0 frame=1'
}
{
  stacks one 1000
  echo '#name 2 function=push file=list.h line=5'
  echo '#name 2 function=parse file=app.cpp line=10'
  echo '#name 5 function=old'
  for i in 2 3 4 5; do echo "#node $i parent=1 frame=$i"; done
  awk 'BEGIN { for (i = 1; i <= 1000; ++i) {
    printf "malloc(100) = %x<%d> stack=2\n", 4096 * i, 5 * i
    printf "malloc(40) = %x<%d> stack=3\n", 4096 * i + 512, 5 * i + 1
    printf "malloc(10) = %x<%d> stack=4\nfree(%x<%d>)\n", 4096 * i + 1024, 5 * i + 2, 4096 * i + 1024, 5 * i + 2
    if (i % 10 == 0) printf "malloc(1000) = %x<%d> stack=5\nfree(%x<%d>)\n", 4096 * i + 2048, 5 * i + 3, 4096 * i + 2048, 5 * i + 3 } }'
  echo '#cmt end=complete'
} >before.trace
{
  stacks two 2000
  echo '#name 2 function=parse.constprop.0 file=app.cpp line=11'
  echo '#name 5 function=malloc'
  echo '#name 5 function=push file=list.h line=6'
  for i in 2 3 4; do echo "#node $i parent=1 frame=$i"; done
  echo '#node 5 parent=2 frame=5'
  awk 'BEGIN { for (i = 1; i <= 1000; ++i) {
    printf "malloc(135) = %x<%d> stack=5\n", 4096 * i, 5 * i
    printf "malloc(40) = %x<%d> stack=3\n", 4096 * i + 512, 5 * i + 1
    printf "malloc(20) = %x<%d> stack=4\nfree(%x<%d>)\n", 4096 * i + 1024, 5 * i + 2, 4096 * i + 1024, 5 * i + 2 } }'
  echo '#cmt end=complete'
} >after.trace
