; A machine whose only work is to show that it lives.
;
; Every two ticks of the BIOS timer (about 110 ms) it writes one sector to LBA 1 of the disk that it was booted from:
; the letters HBT1, then a counter (32 bits, little-endian) that starts at 1 with each boot. The counter in hexadecimal
; goes to the first serial port as well, an E before it when the disk refused the write.

        bits 16
        org 0x7c00

beat    equ 0x8000                      ; the sector, in free memory above us

        xor ax, ax
        mov ds, ax
        mov es, ax
        mov ss, ax
        mov sp, 0x7c00
        mov [drive], dl                 ; the BIOS says which disk this is
        mov ax, 0x00e3                  ; first serial port, 9600 8N1
        xor dx, dx
        int 0x14

        mov cx, 256                     ; a clean sector
        mov di, beat
        xor ax, ax
        cld
        rep stosw
        mov dword [beat], 'HBT1'

again:
        inc dword [beat + 4]
        mov si, packet                  ; extended write
        mov ax, 0x4300
        mov dl, [drive]
        int 0x13
        jnc told
        mov al, 'E'
        call put
told:
        mov ebx, [beat + 4]
        mov cx, 8
digit:
        rol ebx, 4
        mov al, bl
        and al, 15
        add al, '0'
        cmp al, '9'
        jbe decimal
        add al, 'a' - '9' - 1
decimal:
        call put
        loop digit
        mov al, 13
        call put
        mov al, 10
        call put

        mov ebx, [0x46c]                ; ticks since midnight
wait_tick:
        sti
        hlt
        mov eax, [0x46c]
        sub eax, ebx
        jc again                        ; midnight set the ticks back
        cmp eax, 2
        jb wait_tick
        jmp again

put:                                    ; al to the serial port
        push ax
        mov dx, 0x3fd
full:
        in al, dx
        test al, 0x20
        jz full
        pop ax
        mov dx, 0x3f8
        out dx, al
        ret

drive:  db 0x80

        align 4
packet: db 16, 0                        ; its own size
        dw 1                            ; one sector
        dw beat, 0                      ; from here
        dq 1                            ; to LBA 1

        times 510 - ($ - $$) db 0
        dw 0xaa55
